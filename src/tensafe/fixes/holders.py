"""The list from which a loop took its element, as far as the function builds that list itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensafe.fixes.names import is_read_later
from tensafe.fixes.source import SCOPES, Source, path_of

PASSES_ELEMENTS = frozenset(["reversed", "enumerate", "zip", "list", "tuple", "iter"])
LISTS = (ast.List, ast.ListComp, ast.Tuple)


def list_read_later(source: Source, node: ast.AST, name: str) -> str | None:
    """The list that holds the object of a loop's name and is read after the loop; None when there is none.

    `for x in xs: x += 1` writes what `xs` holds; `x = x + 1` would not.
    """
    for loop in source.parents(node):
        if isinstance(loop, SCOPES):
            return None
        if isinstance(loop, (ast.For, ast.AsyncFor)) and name in _names(loop.target):
            held = (one for one in _held_in(loop.iter) if _is_built_here(source, loop, one))
            return next((one for one in held if is_read_later(source, loop, one)), None)
    return None


def _held_in(iterated: ast.expr) -> Iterator[str]:
    """The names whose elements a loop goes through: `xs` in `reversed(xs[:-1])`."""
    if isinstance(iterated, ast.Call) and path_of(iterated.func) in PASSES_ELEMENTS:
        for argument in iterated.args:
            yield from _held_in(argument)
    elif isinstance(iterated, ast.Subscript):
        yield from _held_in(iterated.value)
    elif isinstance(iterated, ast.Name):
        yield iterated.id


def _is_built_here(source: Source, loop: ast.AST, name: str) -> bool:
    scope = source.scope(loop)
    made = [node for node in source.fills.get(name, []) if isinstance(node, ast.Assign)]
    return any(isinstance(node.value, LISTS) and source.scope(node) is scope for node in made)


def _names(target: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
