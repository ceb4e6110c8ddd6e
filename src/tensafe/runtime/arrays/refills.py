"""An array handed out again and again by its owner, who refills it: the caller's old one is the new one."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

from tensafe.facts import Site
from tensafe.runtime.places.frames import INTERNAL, Place
from tensafe.runtime.places.source import site_of_node, syntax_of
from tensafe.runtime.places.variables import Names, place_of, stored, user_frames
from tensafe.runtime.places.writing import Scope, scope_of, statement_at
from tensafe.syntax.reading import dotted


class Refill(NamedTuple):
    """The line that hands the array out, and those that refill it."""

    place: Place
    site: Site
    writes: tuple[Site, ...]


def find(array: Any) -> Refill | None:
    """Who handed the array out, if a frame of the program holds it under two names, one meant to be older.

    The sign is an assignment that is still to come, `last = new`, though `last` is `new` already.
    """
    for frame in user_frames(2, 4):
        place = place_of(frame)
        statement = statement_at(place)
        scope = scope_of(place, statement) if statement is not None else None
        if statement is None or scope is None:
            continue
        names: Names | None = None
        for old, new in _to_come(scope, statement):
            names = names or Names(frame)
            held = names.value(old)
            if held is array and names.value(new) is array and _mentions(statement, dotted(old)):
                method = _call_of(scope, statement, dotted(new))
                return _owner(array, method)
    return None


def _to_come(scope: Scope, statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Assignments `old = new` of two names, further down in the same function."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and node.lineno > statement.lineno and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name | ast.Attribute) and isinstance(
                node.value, ast.Name | ast.Attribute
            ):
                yield target, node.value


def _mentions(part: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Name | ast.Attribute) and dotted(node) == name for node in ast.walk(part))


def _call_of(scope: Scope, before: ast.stmt, name: str) -> str:
    """The method whose result was bound to a name before a statement: `step` in `obs, r = env.step(a)`."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and node.lineno < before.lineno and isinstance(node.value, ast.Call):
            parts = [part for target in node.targets for part in ast.walk(target)]
            targets = [dotted(part) for part in parts if isinstance(part, ast.Name | ast.Attribute)]
            if name in targets and isinstance(node.value.func, ast.Attribute):
                return node.value.func.attr
    return ""


def _owner(array: Any, method: str) -> Refill | None:
    """The method that returns the attribute in which its object keeps the array."""
    for holder in gc.get_referrers(array):
        for owner in gc.get_referrers(holder) if type(holder) is dict else (holder,):
            own = stored(owner)
            attributes = [key for key, value in own.items() if value is array]
            found = _returned(type(owner), method, attributes) if attributes else None
            if found is not None:
                return found
    return None


def _returned(kind: type, method: str, attributes: list[str]) -> Refill | None:
    function = next((vars(base)[method] for base in kind.__mro__ if method in vars(base)), None)
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or INTERNAL[code.co_filename]:
        return None
    place: Place = (code, 0)
    syntax = syntax_of(code.co_filename)
    for body in syntax.parents if syntax is not None else ():
        if isinstance(body, ast.FunctionDef) and body.name == method and code.co_firstlineno <= body.lineno:
            if body.lineno - code.co_firstlineno > 8:
                continue
            names = {f"self.{name}" for name in attributes}
            for node in ast.walk(body):
                if isinstance(node, ast.Return) and node.value is not None and _gives(node.value, names):
                    writes = tuple(site_of_node(place, write) for write in _writes(body, names))
                    return Refill(place, site_of_node(place, node), writes)
    return None


def _gives(value: ast.expr, names: set[str]) -> bool:
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return any(isinstance(part, ast.Attribute) and dotted(part) in names for part in parts)


def _writes(body: ast.AST, names: set[str]) -> Iterator[ast.stmt]:
    for node in ast.walk(body):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            for part in ast.walk(target):
                if (
                    isinstance(part, ast.Subscript)
                    and dotted(part.value) in names
                    and isinstance(node, ast.stmt)
                ):
                    yield node
