"""Which name a write goes to: the syntax of the writing line, and what stands around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensafe.runtime.places.frames import Place, _positions
from tensafe.runtime.places.source import expressions_at, syntax_of
from tensafe.syntax.reading import dotted

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module | ast.ClassDef


def target_at(place: Place) -> ast.expr | None:
    """What the call or statement at a place writes to: `x[0]` in `x[0] += 1`, `x` in `x.add_(1)`."""
    for node in expressions_at(place):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
                return node.func.value
            return node.args[0] if node.args else None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            return node.value
    statement = statement_at(place)
    if isinstance(statement, ast.AugAssign):
        return statement.target
    return None


def call_at(place: Place) -> ast.Call | None:
    """The call that runs at a place."""
    return next((node for node in expressions_at(place) if isinstance(node, ast.Call)), None)


def statement_at(place: Place) -> ast.stmt | None:
    """The statement that runs at a place."""
    syntax = syntax_of(place[0].co_filename)
    if syntax is None:
        return None
    nodes = expressions_at(place)
    if nodes:
        return syntax.statement(nodes[0])
    line, end_line, column, _ = _positions(*place)
    for statement in syntax.statements.get(line or 0, ()):
        if column is None or (statement.col_offset, statement.end_lineno) == (column, end_line):
            return statement
    return None


def scope_of(place: Place, node: ast.AST) -> Scope | None:
    """The function, or the module, around a node."""
    syntax = syntax_of(place[0].co_filename)
    while syntax is not None and node in syntax.parents:
        node = syntax.parents[node]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            return node
    return node if isinstance(node, ast.Module) else None


def class_of(place: Place, node: ast.AST) -> ast.ClassDef | None:
    """The class around a node."""
    syntax = syntax_of(place[0].co_filename)
    while syntax is not None and node in syntax.parents:
        node = syntax.parents[node]
        if isinstance(node, ast.ClassDef):
            return node
    return None


def assignments(scope: ast.AST, name: str) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """The assignments to a name or attribute in a scope, with their values, in the order of the text."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name | ast.Attribute) and dotted(target) == name:
                    yield node, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None and dotted(node.target) == name:
            yield node, node.value
