"""Copies that are only read, of a tensor that nobody writes while they live."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensafe.ops import OPS, Gives, words
from tensafe.static import around
from tensafe.static.costs.names import path_of
from tensafe.static.costs.repeated_copies import Repeated
from tensafe.static.machine import Machine
from tensafe.static.values import TENSOR, Instance, Layer, Memory

_LOOKS = words("shape dtype device ndim is_cuda requires_grad layout itemsize nbytes")
_READERS = words("size dim numel item tolist stride")
_HARMLESS = words(
    "print len range float int bool str enumerate zip min max sum abs isinstance round sorted list"
)


def copied(m: Machine, source: Memory, result: Memory, node: ast.Call) -> None:
    """`name = source.clone()`: ask where all that follows only reads, both the copy and its source."""
    statement, func = m.statement, node.func
    if (
        source.kind != TENSOR
        or source.leaf
        or node.args
        or node.keywords
        or not isinstance(func, ast.Attribute)
    ):
        return
    if not isinstance(statement, ast.Assign) or statement.value is not node or len(statement.targets) != 1:
        return
    target, origin = statement.targets[0], _name_of(func.value)
    if not isinstance(target, ast.Name) or not origin or origin == target.id:
        return
    scope = around.function_around(m.frame.source, statement)
    if _Reading(m, scope, statement).is_all(target.id, origin):
        m.repeated.append(Repeated(source, result, node, m.frame, m.past.order))


def _name_of(node: ast.expr) -> str:
    """The plain name that is copied, perhaps with `.detach()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
        node = node.func.value
    return node.id if isinstance(node, ast.Name) else ""


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class _Reading:
    """What one function, or the file itself, does around a copy."""

    def __init__(self, m: Machine, scope: ast.AST, statement: ast.Assign) -> None:
        self.m = m
        self.source = m.frame.source
        self.scope = scope
        self.statement = statement

    def is_all(self, copy: str, origin: str) -> bool:
        """Whether copy and source are only read from here on, and every call on the way is a known one."""
        found = list(around.uses(self.scope, copy))
        reads = [name for name in found if isinstance(name.ctx, ast.Load)]
        if (
            sum(isinstance(name.ctx, ast.Store) for name in found) != 1
            or not reads
            or not all(map(self._is_read, reads))
        ):
            return False
        after = [one for one in self._after() if not isinstance(one, _DEFINITIONS)]
        held = [name for part in after for name in around.uses(part, origin)]
        return all(isinstance(one.ctx, ast.Store) or self._is_read(one) for one in held) and all(
            self._is_known(call) for part in after for call in ast.walk(part) if isinstance(call, ast.Call)
        )

    def _after(self) -> Iterator[ast.stmt]:
        """The statements that run after the copy: in a loop, those before it too."""
        inner: ast.AST = self.statement
        for outer in self.source.around(self.statement):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(outer, name, [])
                if isinstance(block, list) and inner in block:
                    loops = isinstance(outer, ast.For | ast.While)
                    place = block.index(inner)
                    yield from block[: block.index(inner)] if loops else ()
                    yield from block[place + 1 :]
            if outer is self.scope:
                return
            inner = outer

    def _is_read(self, node: ast.expr) -> bool:
        """Whether only the values of what stands here are used, never the memory itself."""
        for outer in self.source.around(node):
            if isinstance(outer, ast.BinOp | ast.UnaryOp | ast.Compare | ast.FormattedValue):
                return True
            if isinstance(outer, ast.Attribute):
                return outer.attr in _LOOKS or self._calls_reader(outer)
            if isinstance(outer, ast.Call):
                return node in outer.args and self._is_known(outer) and not _may_alias(outer)
            if isinstance(outer, ast.Subscript) and isinstance(outer.ctx, ast.Load) and outer.value is node:
                node = outer
                continue
            return False
        return False

    def _calls_reader(self, attribute: ast.Attribute) -> bool:
        call = next(iter(self.source.around(attribute)), None)
        if not isinstance(call, ast.Call) or call.func is not attribute:
            return False
        if attribute.attr in ("clone", "detach") and any(
            one is self.statement for one in self.source.around(call)
        ):
            return True  # the copy in question
        op = OPS.get(attribute.attr)
        return attribute.attr in _READERS or (op is not None and op.gives is Gives.FRESH)

    def _is_known(self, call: ast.Call) -> bool:
        """Whether a call is known to write nothing."""
        if any(word.arg in ("out", "inplace") for word in call.keywords):
            return False
        path = path_of(self.m, call.func)
        name = path.rpartition(".")[2]
        if path.startswith(("torch.", "math.")):
            return (
                name in OPS
                or name in ("no_grad", "manual_seed", "inference_mode")
                or path.startswith("math.")
            )
        if isinstance(call.func, ast.Name):
            return call.func.id in _HARMLESS or self._is_layer(self.m.look_up(call.func.id))
        if not isinstance(call.func, ast.Attribute):
            return False
        owner = call.func.value
        if isinstance(owner, ast.Name) and owner.id == "self":
            this = self.m.frame.self_value
            return type(this) is Instance and self._is_layer(this.attributes.get(call.func.attr))
        return (
            call.func.attr in _READERS
            or call.func.attr in ("append", "detach", "format")
            or call.func.attr in OPS
        )

    @staticmethod
    def _is_layer(value: object) -> bool:
        return type(value) is Layer and value.op is not None and not value.inplace


def _may_alias(call: ast.Call) -> bool:
    """Whether the result of a known call may look into what it is given."""
    name = ast.unparse(call.func).rpartition(".")[2]
    op = OPS.get(name)
    return name in ("append", "list", "enumerate", "zip", "max", "min", "sorted") or (
        op is not None and op.gives is not Gives.FRESH
    )
