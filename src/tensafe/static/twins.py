"""Two names for one module where two modules are meant."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from tensafe.facts import Kind, Moment
from tensafe.ops import words
from tensafe.static.machine import Machine
from tensafe.static.values import Instance, Layer, Memory, Optimizer, State, Value

_MOVES = words("to cuda cpu float half double eval train requires_grad_")
_SEPARATE = re.compile(
    r"target|teacher|(^|_)(ref|reference|ema|old|frozen|anchor|momentum)(_|$)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Twin:
    """The second name of a module: where it was bound."""

    kept: Moment
    storages: tuple[int, ...]
    meant: bool  # as a module of its own: moved there, not just named again
    first: Moment | None = None  # where the other name got it

    @property
    def trail(self) -> tuple[Moment, ...]:
        return (self.first, self.kept) if self.first is not None else (self.kept,)


def loaded(m: Machine, target: Value, source: Value, node: ast.AST) -> None:
    """`target.load_state_dict(source.state_dict())` of one and the same module: two were meant."""
    storages = _module_storages(target)
    if not storages or _module_storages(source)[:1] != storages[:1]:
        return
    for twin in m.past.twins:
        write = m.past.last_write(twin.storages, twin.kept, m.path) if twin.storages == storages else None
        if write is not None and not twin.meant:
            kept = State("module", target, storages, twin.trail)
            m.ask_kept(Kind.RESTORED, node, kept, write.moment, "Module.load_state_dict")


def bound_name(m: Machine, target: ast.Name, value: Value, statement: ast.stmt) -> None:
    _bound(m, target.id, value, statement, m.frame.scope)


def bound_attribute(
    m: Machine, owner: Instance, target: ast.Attribute, value: Value, statement: ast.stmt
) -> None:
    _bound(m, target.attr, value, statement, owner.attributes)


def _bound(m: Machine, name: str, value: Value, statement: ast.stmt, scope: dict[str, Value]) -> None:
    """A name that promises a separate network gets one that another name has already."""
    if not isinstance(statement, ast.Assign):
        return
    moved = _moved(statement.value)
    if moved:
        m.past.bindings[id(scope), name] = m.moment(Kind.VIEWED, f"Module.{moved}", statement.value)
    if not _SEPARATE.search(name):
        return
    storages = _module_storages(value)
    if not storages or (not moved and not isinstance(statement.value, ast.Name | ast.Attribute)):
        return
    first = next(
        (other for other, held in scope.items() if other != name and _is_fellow(held, storages)), None
    )
    if first is None:
        return
    op = f"Module.{moved}" if moved else ast.unparse(statement.value)
    kept = m.moment(Kind.KEPT, op, statement.value, note=f"the same module as `{first}`")
    earlier = m.past.bindings.get((id(scope), first))
    m.past.twins.append(Twin(kept, storages, bool(moved), earlier))


def _is_fellow(value: Value, storages: tuple[int, ...]) -> bool:
    return _module_storages(value)[:1] == storages[:1]


def _module_storages(value: Value) -> tuple[int, ...]:
    if isinstance(value, Layer | Instance):
        return (value.storage,)
    if type(value) is Memory and value.kind == "thing":
        return value.storages
    return ()


def _moved(node: ast.expr) -> str:
    """The method by which a module was moved: it gives the module itself."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
        return node.func.attr
    return ""


def stepped(m: Machine, optimizer: Optimizer, node: ast.AST, moment: Moment) -> None:
    """An optimizer writes a module that another name holds as a separate one."""
    for twin in m.past.twins:
        if twin.meant and set(twin.storages) & set(optimizer.storages):
            kept = State("module", optimizer, twin.storages, twin.trail)
            m.ask_kept(Kind.STEPPED, node, kept, moment, f"{optimizer.name}.step")
