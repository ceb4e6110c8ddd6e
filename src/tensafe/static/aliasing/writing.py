"""One write with all that can be asked about it: its name, its statement, its function, and the callers."""

from __future__ import annotations

import ast
from functools import cached_property

from tensafe.facts import Certainty, Kind, Moment
from tensafe.facts import Value as Fact
from tensafe.static.machine import Machine
from tensafe.static.values import Choice, Frame, Instance, Layer, Mapping, Memory, Sequence, Value
from tensafe.syntax.chains import Origin, root_of
from tensafe.syntax.reading import Syntax, dotted


class Writing:
    """A write by a line of the program, to a name of its function."""

    def __init__(self, m: Machine, target: Memory, op: str, node: ast.AST, moment: Moment) -> None:
        self.m = m
        self.target = target
        self.op = op
        self.node = node
        self.moment = moment
        self.frame = m.frame
        self.by_layer = isinstance(node, ast.Call) and not writes_by_name(node)

    @cached_property
    def syntax(self) -> Syntax:
        return self.m.books.syntax(self.frame.node)

    @cached_property
    def statement(self) -> ast.stmt | None:
        return self.syntax.statement(self.node)

    @cached_property
    def root(self) -> ast.expr | None:
        """The name, or the attribute of a name, through which the line writes."""
        node = target_of(self.node)
        return root_of(node) if node is not None else None

    @cached_property
    def name(self) -> str:
        return dotted(self.root) if self.root is not None else ""

    def tell(
        self,
        note: str,
        trail: tuple[Moment, ...],
        label: str = "",
        certainty: Certainty = Certainty.MAY,
        at: ast.AST | None = None,
    ) -> bool:
        """Ask the rule, once for each line."""
        node = at or self.node
        if self.m.books.tells((self.frame.source.path, getattr(node, "lineno", 0))):
            values = {"alias": Fact(frozenset(), trail, label)}
            self.m.put(Kind.WRITTEN, self.op, node, self.frame, values, certainty=certainty, note=note)
        return True

    def made(self, origin: Origin) -> tuple[Moment, ...]:
        """Where the second name was made."""
        if origin.statement is None:
            return ()
        op = origin.makers[0] if origin.makers else ""
        return (moment_in(self.m, self.frame, Kind.VIEWED, op, origin.statement),)

    def read(self, node: ast.AST) -> Moment:
        """Where the other name is read afterwards."""
        return moment_in(self.m, self.frame, Kind.COPIED, "", node, "read")


def moment_in(m: Machine, frame: Frame, kind: Kind, op: str, node: ast.AST, note: str = "") -> Moment:
    """Something at a node of another frame than the one at work."""
    return Moment(kind, op, frame.source.site(node, frame.label), m.past.tick(), note=note)


def target_of(node: ast.AST) -> ast.expr | None:
    """What a node writes to: `x[0]` in `x[0] += 1`, `x` in `x.add_(1)`, in `layer(x)`, in `f(out=x)`."""
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Subscript):
        return node.value
    if not isinstance(node, ast.Call):
        return None
    out = next((keyword.value for keyword in node.keywords if keyword.arg == "out"), None)
    if out is not None:
        return out
    if (
        isinstance(node.func, ast.Attribute)
        and node.func.attr.endswith("_")
        and not _is_torch(node.func.value)
    ):
        return node.func.value
    return node.args[0] if node.args else None


def writes_by_name(node: ast.Call) -> bool:
    """Whether a call says that it writes: `x.add_(1)`, `torch.relu_(x)`, `f(out=x)`; `layer(x)` does not."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
    return name.endswith("_") or any(keyword.arg == "out" for keyword in node.keywords) or _is_numpy(node)


def _is_torch(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("torch", "th", "F", "init")


def _is_numpy(node: ast.Call) -> bool:
    func = node.func
    return isinstance(func, ast.Attribute) and func.attr in ("fill", "sort", "partition", "put", "copyto")


def shares(value: Value | None, target: Memory) -> bool:
    """Whether a value has this memory, or may have it."""
    return type(value) is Memory and not set(value.storages).isdisjoint(target.storages)


def lies_in(m: Machine, value: Value | None, target: Memory) -> bool:
    """Whether a value is this memory, or something that holds it."""
    if type(value) is Memory:
        return any(
            m.past.is_within(inner, outer) for inner in target.storages[:1] for outer in value.storages
        )
    if isinstance(value, Instance | Layer):
        return any(m.past.is_within(inner, value.storage) for inner in target.storages[:1])
    if type(value) is Choice:
        return any(lies_in(m, option, target) for option in value.options)
    return False


def is_parameter(value: Value | None) -> bool:
    return type(value) is Memory and value.leaf and value.owner is not None


def holds(m: Machine, value: Value | None, target: Memory, depth: int = 3) -> bool:
    """Whether a value is this memory, a container with it, or something that holds it."""
    if depth == 0 or value is None:
        return False
    if type(value) is Sequence:
        inner = [*value.items, *([value.rest] if value.rest is not None else [])]
    elif type(value) is Mapping:
        inner = [*value.items.values(), *([value.rest] if value.rest is not None else [])]
    else:
        return lies_in(m, value, target)
    return any(holds(m, item, target, depth - 1) for item in inner)
