"""Live references taken as if they were copies: lists of parameters, compared with the present."""

from __future__ import annotations

import ast

from tensafe.facts import Kind
from tensafe.static.hazards import memories
from tensafe.static.machine import Machine
from tensafe.static.values import Mapping, Memory, Sequence, Value


def collected(m: Machine, made: Value, node: ast.AST) -> None:
    """A list or dict of live parameters is a live reference with a date."""
    live = [
        one for one in memories(made) if one.owner is not None and one.leaf and not one.trail and one.exact
    ]
    if not live or not isinstance(made, Sequence | Mapping):
        return
    kept = m.moment(Kind.KEPT, "Module.parameters", node)
    done: dict[int, Memory] = {}

    def dated(value: Value) -> Value:
        if type(value) is Memory and value in live:
            twin = done.setdefault(id(value), _dated(value))
            twin.trail = (kept,)
            return twin
        if type(value) is Sequence:
            return Sequence(
                [dated(item) for item in value.items], value.rest and dated(value.rest), value.kind
            )
        return value

    if type(made) is Sequence:
        made.items = [dated(item) for item in made.items]
    elif type(made) is Mapping:
        made.items = {key: dated(item) for key, item in made.items.items()}
    if made.rest is not None:
        made.rest = dated(made.rest)


def _dated(value: Memory) -> Memory:
    twin = Memory(value.kind, value.storages, value.grad, (value,))
    twin.base, twin.dtype = value.base, value.dtype
    twin.leaf, twin.owner, twin.exact, twin.hidden = value.leaf, value.owner, value.exact, value.hidden
    return twin


def bound(m: Machine, value: Value, statement: ast.stmt) -> Value:
    """A parameter that is given a name of its own is a live reference with a date, too."""
    if not isinstance(statement, ast.Assign) or type(value) is not Memory:
        return value
    if not value.leaf or value.owner is None or value.trail or not _is_read(statement.value):
        return value
    named = _dated(value)
    named.trail = (m.moment(Kind.KEPT, "Module.parameters", statement.value),)
    return named


def _is_read(node: ast.expr) -> bool:
    """`model.weight`, perhaps with `.data` or `.detach()`."""
    if isinstance(node, ast.Call):
        return (
            isinstance(node.func, ast.Attribute) and node.func.attr == "detach" and _is_read(node.func.value)
        )
    return isinstance(node, ast.Attribute)


def compared(m: Machine, left: Value, right: Value, node: ast.AST) -> None:
    """A difference or comparison of a kept reference with the live tensor it is."""
    for kept, live in ((left, right), (right, left)):
        if type(kept) is not Memory or type(live) is not Memory or not kept.trail or not kept.exact:
            continue
        taken = kept.trail[-1]
        if taken.kind is not Kind.KEPT or taken in live.trail or not live.exact:
            continue
        if not set(kept.storages) & set(live.storages):
            continue
        write = m.past.last_write(kept.storages, taken, m.path)
        if write is not None:
            m.ask_kept(Kind.COMPARED, node, kept, write.moment, "sub")
