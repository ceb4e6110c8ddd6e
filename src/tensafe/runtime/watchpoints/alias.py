"""Through which tensor a write went, in words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch

from tensafe.runtime.places.frames import Place, _positions
from tensafe.runtime.places.source import Syntax, expressions_at, syntax_of
from tensafe.runtime.watchpoints.region import Region


def through(target: Any, region: Region, label: str, place: Place | None) -> str:
    """`itself`, or the alias: how the line spells it, what it is, where that name was bound."""
    if isinstance(target, torch.UntypedStorage):
        return "its storage"
    if target is region.owner():
        return "itself"
    text = f"{_kind(target, region.root())} of shape {list(target.shape)}"
    offset = target.storage_offset() - region.extent.offset // region.extent.itemsize
    if offset:
        text += f" that starts {abs(offset)} elements {'after' if offset > 0 else 'before'} it"
    spelled = _spelling(label, place)
    if spelled is None:
        return text
    made = _bound_at(place, spelled)
    return f"`{spelled}`, {text}" + (f", made at line {made}" if made else "")


def _kind(target: torch.Tensor, root: Any) -> str:
    if target is root:
        return "the tensor"
    if root is None or target.is_inference():
        return "a tensor"
    return "a view" if target._base is root else "an alias that is no view (`.data`, `detach()`)"


def _spelling(label: str, place: Place | None) -> str | None:
    """The expression that is written at this place, in source form."""
    for node in _expressions(place):
        if isinstance(node, ast.Call):
            written = _written(label, node)
            return ast.unparse(written) if written is not None else None
        if isinstance(node, ast.Subscript):
            return ast.unparse(node.value)
    return None


def _expressions(place: Place | None) -> Iterator[ast.expr]:
    """The expressions at a place, and the target of an augmented assignment there."""
    if place is None:
        return
    yield from expressions_at(place)
    syntax, line = syntax_of(place[0].co_filename), _positions(*place)[0]
    for statement in syntax.statements.get(line, ()) if syntax is not None and line is not None else ():
        if isinstance(statement, ast.AugAssign):
            target = statement.target
            yield ast.Subscript(target, ast.Constant(0)) if isinstance(target, ast.Name) else target


def _written(label: str, call: ast.Call) -> ast.expr | None:
    """What a call writes: the object of a method, `out=` or the first argument of a function."""
    if not label.startswith("torch."):
        return call.func.value if isinstance(call.func, ast.Attribute) else None
    out = next((keyword.value for keyword in call.keywords if keyword.arg == "out"), None)
    return out if out is not None else next(iter(call.args), None)


def _bound_at(place: Place | None, name: str) -> int | None:
    """The last line before the place, in its function, that binds this name; None for anything but a name."""
    syntax = syntax_of(place[0].co_filename) if place is not None else None
    line = _positions(*place)[0] if place is not None else None
    if syntax is None or line is None or place is None or not name.isidentifier():
        return None
    first = place[0].co_firstlineno
    lines = (
        node.lineno for node in syntax.parents if isinstance(node, ast.Name) and _binds(syntax, node, name)
    )
    return max((number for number in lines if first <= number < line), default=None)


def _binds(syntax: Syntax, node: ast.Name, name: str) -> bool:
    return (
        node.id == name
        and isinstance(node.ctx, ast.Store)
        and not isinstance(syntax.parents.get(node), ast.AugAssign)
    )
