"""Which line made a view: followed in the source, from where it is kept through names and functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensafe.facts import Site
from tensafe.runtime.places.source import Syntax, syntax_of
from tensafe.runtime.refusals.origins import FUNCTIONS, Put, own_files, site_in, walk_scope

VIEWING = frozenset(
    {"narrow", "select", "chunk", "split", "unbind", "unfold", "diagonal", "tensor_split", "squeeze", "view"}
)
MOST_STEPS = 8


def view_site(put: Put) -> Site:
    """The statement that made the view kept by this put; the put itself where it cannot be told."""
    syntax = syntax_of(put.filename)
    if put.value is None or syntax is None:
        return put.site
    found = _followed(put.filename, syntax, put.value, MOST_STEPS)
    return found if found is not None else put.site


def _followed(filename: str, syntax: Syntax, value: ast.expr, steps: int) -> Site | None:
    if not steps:
        return None
    if isinstance(value, ast.ListComp | ast.GeneratorExp | ast.SetComp):
        return _followed(filename, syntax, value.elt, steps - 1)
    if isinstance(value, ast.Tuple | ast.List) and value.elts:
        return _followed(filename, syntax, value.elts[0], steps - 1)
    if _views(value):
        statement = syntax.statement(value)
        return site_in(filename, statement if statement is not None else value)
    if isinstance(value, ast.Name):
        bound = _last_binding(syntax, value)
        return _followed(filename, syntax, bound, steps - 1) if bound is not None else None
    if isinstance(value, ast.Call):
        for name, other, returned in _returned(value, filename):
            found = _followed(name, other, returned, steps - 1)
            if found is not None:
                return found
    return None


def _views(value: ast.expr) -> bool:
    if isinstance(value, ast.Subscript):
        return True
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in VIEWING
    )


def _last_binding(syntax: Syntax, name: ast.Name) -> ast.expr | None:
    """The value last given to a name before it is used, within one function."""
    scope = syntax.parents.get(name)
    while scope is not None and not isinstance(scope, (*FUNCTIONS, ast.Module)):
        scope = syntax.parents.get(scope)
    bound = [
        node
        for node in (walk_scope(scope) if scope is not None else ())
        if isinstance(node, ast.Assign)
        and node.lineno <= name.lineno
        and name not in ast.walk(node)
        and any(isinstance(target, ast.Name) and target.id == name.id for target in node.targets)
    ]
    last = max(bound, key=lambda node: node.lineno, default=None)
    return last.value if last is not None else None


def _returned(call: ast.Call, filename: str) -> Iterator[tuple[str, Syntax, ast.expr]]:
    """What the program's functions of the called name return."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    for name, syntax in own_files([filename]):
        for node in syntax.parents:
            if isinstance(node, ast.FunctionDef) and node.name == called:
                for part in walk_scope(node):
                    if isinstance(part, ast.Return) and part.value is not None:
                        yield name, syntax, part.value
