"""What stands around a node in its file: loops, its block, the function it belongs to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tensafe.ops import words

if TYPE_CHECKING:
    from tensafe.static.machine import Machine
    from tensafe.static.source import Source

Loop = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
_PUTS = words("append extend add put insert appendleft")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def loop_around(source: Source, node: ast.AST) -> Loop | None:
    """The innermost loop of the same function whose body this node is in."""
    inner = node
    for outer in source.around(node):
        if isinstance(outer, FUNCTIONS):
            return None
        if isinstance(outer, LOOPS) and not _is_head(outer, inner):
            return outer
        inner = outer
    return None


def _is_head(loop: Loop, inner: ast.AST) -> bool:
    """Whether `inner` is what the loop runs over, which is evaluated once."""
    if isinstance(loop, ast.For | ast.AsyncFor):
        return inner is loop.iter
    if isinstance(loop, ast.While):
        return False
    return inner is loop.generators[0]


def function_around(source: Source, node: ast.AST) -> ast.AST:
    """The function, or the file."""
    return next((outer for outer in source.around(node) if isinstance(outer, FUNCTIONS)), source.tree)


def is_in(node: ast.AST, outer: ast.AST, source: Source) -> bool:
    return node is outer or outer in source.around(node)


def bound_in(loop: ast.AST) -> set[str]:
    """The names that a loop gives new values."""
    return {
        node.id for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(node))


def block_of(source: Source, statement: ast.AST) -> list[ast.stmt]:
    """The statements in whose row this one stands."""
    outer = next(iter(source.around(statement)), None)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(outer, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return []


def is_expected(m: Machine, node: ast.AST) -> bool:
    """Whether a refusal here is caught, by this function or by one that called it."""
    places = [(m.frame.source, node), *((frame.source, caller) for caller, frame in m.called_from)]
    return any(_in_try(source, place) for source, place in places)


def _in_try(source: Source, node: ast.AST) -> bool:
    inner = node
    for outer in source.around(node):
        if isinstance(outer, ast.Try) and outer.handlers and inner in outer.body:
            return True
        inner = outer
    return False


def uses(scope: ast.AST, name: str) -> Iterator[ast.Name]:
    """Where a name stands in a function, inner functions included that have no such name of their own."""
    stack = list(ast.iter_child_nodes(scope))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and node.id == name:
            yield node
        if not isinstance(node, FUNCTIONS) or name not in _own_names(node):
            stack.extend(ast.iter_child_nodes(node))


def loads(scope: ast.AST, name: str) -> Iterator[ast.Name]:
    """Where a name is read."""
    return (node for node in uses(scope, name) if isinstance(node.ctx, ast.Load))


def _own_names(function: ast.AST) -> set[str]:
    arguments = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    return arguments | bound_in(function)


def keeps(outer: ast.AST, inner: ast.AST) -> bool:
    """Whether the value of `inner` is put somewhere by what is around it, or returned."""
    if isinstance(outer, ast.Call):
        func = outer.func
        return inner in outer.args and isinstance(func, ast.Attribute) and func.attr in _PUTS
    if isinstance(outer, ast.Assign):
        return inner is outer.value and any(
            isinstance(target, ast.Attribute | ast.Subscript) for target in outer.targets
        )
    return isinstance(outer, ast.Return | ast.Yield)
