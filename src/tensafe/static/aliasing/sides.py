"""An array and a tensor over one memory under two names: one is written, both are read afterwards."""

from __future__ import annotations

import ast

from tensafe.facts import Kind, Moment
from tensafe.facts import Value as Fact
from tensafe.static.aliasing.items import converts
from tensafe.static.aliasing.writing import Writing, moment_in, shares
from tensafe.static.values import ARRAY, TENSOR, Memory
from tensafe.syntax.chains import Origin, made_from
from tensafe.syntax.reading import dotted

_EXPORTS = frozenset({"from_numpy", "numpy", "as_tensor", "asarray"})


def other_side(at: Writing) -> bool:
    """`t = torch.from_numpy(a); t.mul_(2)`: `a` is changed as well."""
    if at.statement is None or not isinstance(at.root, ast.Name) or at.target.kind not in (ARRAY, TENSOR):
        return False
    others = [name for name, value in at.frame.scope.items() if name != at.name and _faces(at, value)]
    if not others or not converts(at):
        return False
    origin = made_from(at.syntax, at.name, at.statement.lineno)
    if origin is not None and dotted(origin.root) in others and _EXPORTS & set(origin.makers):
        return _tell(at, origin, dotted(origin.root), "again" if at.target.kind == TENSOR else "array")
    for name in others:
        origin = made_from(at.syntax, name, at.statement.lineno - 1)
        if origin is not None and dotted(origin.root) == at.name and _EXPORTS & set(origin.makers):
            return _tell(at, origin, name, "kept")
    return False


def _faces(at: Writing, value: object) -> bool:
    """Whether a value is the same memory from the other library's side."""
    return (
        type(value) is Memory
        and value.kind in (ARRAY, TENSOR)
        and value.kind != at.target.kind
        and shares(value, at.target)
    )


def _tell(at: Writing, origin: Origin, name: str, note: str) -> bool:
    assert at.statement is not None
    read = at.syntax.read_after(at.statement, name)
    if read is None or at.syntax.read_after(at.statement, at.name) is None or origin.statement is None:
        return False
    if at.m.books.tells((at.frame.source.path, getattr(at.node, "lineno", 0))):
        made = moment_in(at.m, at.frame, Kind.EXPORTED, _maker(origin), origin.statement, "once")
        later: Moment = moment_in(at.m, at.frame, Kind.COPIED, "", read)
        values = {"memory": Fact(frozenset(), (made, later), name)}
        at.m.put(Kind.EXPORTED, at.op, at.node, at.frame, values, note=note)
    return True


def _maker(origin: Origin) -> str:
    return next((maker for maker in origin.makers if maker in _EXPORTS), "")
