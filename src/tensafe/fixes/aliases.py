"""The other names under which a function knows an object, as far as its own assignments tell."""

from __future__ import annotations

import ast
import bisect
import operator
from collections.abc import Iterator

from tensafe.fixes.names import LOOPS, is_read_later, within
from tensafe.fixes.source import Source, path_of
from tensafe.fixes.twins import ALWAYS_VIEWS, VIEW_PROPERTIES

Binding = tuple[int, ast.stmt, str, frozenset[str]]  # where, statement, bound name, what it may then be


def alias_read_later(source: Source, node: ast.AST, path: str) -> str | None:
    """A name besides `path` that sees a write at this node and is read after it; None when there is none.

    An attribute counts as read: others look at it.
    """
    bindings = _bindings(source, source.scope(node))
    seen, waiting = {path}, [path]
    while waiting:
        name = waiting.pop()
        for other in _same_as(name, bindings, node, source):
            if other in seen:
                continue
            if "." in other or is_read_later(source, node, other):
                return other
            seen.add(other)
            waiting.append(other)
    return None


def _same_as(name: str, bindings: dict[str, list[Binding]], node: ast.AST, source: Source) -> Iterator[str]:
    """The names that an assignment that reaches the node binds to the same object."""
    here = source.statement(node)
    around = {here, *source.parents(here)}
    written = source.span(here)[0]
    loops = [parent for parent in source.parents(here) if isinstance(parent, LOOPS)]
    low, high = source.span(loops[-1]) if loops else (written, written)
    found, since = _latest(name, bindings, (0, written), around, source)
    if since < low or not loops:
        after, _ = _latest(name, bindings, (written + 1, high), around, source)
        found += [(low, bound, values) for _, bound, values in after]
    for at, bound, values in found:
        if name == bound or name in values:
            for other in {bound, *values} - {name}:
                if _latest(other, bindings, (at + 1, written), around, source)[1] < 0:
                    yield other


def _latest(
    name: str,
    bindings: dict[str, list[Binding]],
    between: tuple[int, int],
    around: set[ast.AST],
    source: Source,
) -> tuple[list[tuple[int, str, frozenset[str]]], int]:
    """The bindings of a name, from the end back to the last that surely runs, and where that one is."""
    own = bindings.get(name, [])
    found, since = [], -1
    for number in range(bisect.bisect_left(own, between[1], key=operator.itemgetter(0)) - 1, -1, -1):
        at, statement, bound, values = own[number]
        if at < max(between[0], since):
            break
        found.append((at, bound, values))
        if bound == name and _surely_runs(statement, around, source):
            since = at
    return found, since


def _surely_runs(statement: ast.stmt, around: set[ast.AST], source: Source) -> bool:
    """Whether the statement stands in a block that leads to the node."""
    block = source.block(statement)
    return any(item in around for item in block)


def _bindings(source: Source, scope: ast.AST) -> dict[str, list[Binding]]:
    """Every binding of a name, under that name and under each that it may then share an object with."""
    found = source.bindings.get(scope)
    if found is None:
        found = source.bindings[scope] = {}
        for node in within(scope):
            for target, value in _pairs(node):
                bound = path_of(target)
                if bound:
                    values = frozenset(_values(value)) if value else frozenset()
                    statement = source.statement(node)
                    for name in {bound, *values}:
                        item = (source.span(statement)[0], statement, bound, values)
                        found.setdefault(name, []).append(item)
        for items in found.values():
            items.sort(key=operator.itemgetter(0))
    return found


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _unpacked(target, node.value)
        names = [target for target in node.targets if path_of(target)]
        yield from ((one, other) for one in names for other in names if one is not other)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        yield node.target, node.value
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield from _unpacked(node.target, None)


def _unpacked(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
    elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _unpacked(one, other)
    else:
        for one in target.elts:
            yield from _unpacked(one, None)


def _values(value: ast.expr) -> Iterator[str]:
    """The names whose object, or memory, the value may be."""
    if isinstance(value, ast.IfExp):
        yield from (*_values(value.body), *_values(value.orelse))
    elif isinstance(value, ast.BoolOp):
        for item in value.values:
            yield from _values(item)
    elif isinstance(value, ast.NamedExpr):
        yield from (*_values(value.target), *_values(value.value))
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr in ALWAYS_VIEWS:
            yield from _values(value.func.value)
    elif isinstance(value, ast.Attribute) and value.attr in VIEW_PROPERTIES:
        yield from _values(value.value)
    elif path := path_of(value):
        yield path
