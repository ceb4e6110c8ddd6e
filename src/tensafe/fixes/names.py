"""Who reads and binds a name, as far as one file tells."""

from __future__ import annotations

import ast
import bisect
import operator
from collections.abc import Iterator

from tensafe.fixes.source import SCOPES, Source

LOOPS = (ast.For, ast.AsyncFor, ast.While)
NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def is_read_later(source: Source, node: ast.AST, name: str) -> bool:
    """Whether the name may be read after the statement that holds the node, in a loop's next round included.

    A `global` or `nonlocal` name may: others look at it.
    """
    scope = source.scope(node)
    return is_shared(source, scope, name) or _is_loaded_later(source, source.statement(node), scope, name)


def _is_loaded_later(source: Source, statement: ast.stmt, scope: ast.AST, name: str) -> bool:
    end = source.span(statement)[1]
    places = source.loads.get(name, [])
    low, high = (0, len(source.text)) if isinstance(scope, ast.Module) else _extent(source, scope)
    first, after, past = (
        bisect.bisect_left(places, place, key=operator.itemgetter(0)) for place in (low, end, high)
    )
    loop = _loop_that_keeps(source, statement, name)
    for number in (*range(after, past), *range(first, min(after, past))):
        around = set(source.parents(places[number][1]))
        if scope in around and statement not in around:
            nested = source.scope(places[number][1]) is not scope
            if nested or number >= after or loop in around:
                return True
    return False


def _extent(source: Source, scope: ast.AST) -> tuple[int, int]:
    assert isinstance(scope, (ast.stmt, ast.expr))
    return source.span(scope)


def _loop_that_keeps(source: Source, statement: ast.stmt, name: str) -> ast.AST | None:
    """The outermost loop around the statement in whose next round the name still has its value."""
    kept = None
    for parent in source.parents(statement):
        if isinstance(parent, SCOPES):
            break
        if isinstance(parent, (ast.For, ast.AsyncFor)) and name in _names(parent.target):
            break
        if isinstance(parent, LOOPS):
            kept = parent
    return kept


def bound_otherwise(scope: ast.AST, name: str) -> bool:
    """Whether the scope itself binds the name by anything but `import name`."""
    return any(_binds(node, name) or _imports_as(node, name) for node in within(scope))


def within(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, the heads of inner functions and classes but not their bodies."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, NESTED):
            waiting += ast.iter_child_nodes(node)


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(
        node,
        (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar),
    ):
        return node.name == name
    if isinstance(node, ast.arg):
        return node.arg == name
    return isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names


def _imports_as(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.asname == name != alias.name for alias in node.names)
    return isinstance(node, ast.ImportFrom) and any(
        (alias.asname or alias.name) == name for alias in node.names
    )


def is_shared(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether the scope declares the name `global` or `nonlocal`."""
    return (scope, name) in source.shared


def _names(target: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
