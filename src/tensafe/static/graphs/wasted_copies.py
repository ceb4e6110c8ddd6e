"""A deep copy of a model whose parameters are all replaced at once, and which dies with its function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tensafe.facts import Certainty, Kind
from tensafe.facts import Value as Fact
from tensafe.static.values import Instance, Layer, Value

if TYPE_CHECKING:
    from tensafe.static.machine import Machine

_SAME = frozenset({"eval", "train", "to", "cuda", "cpu", "half", "float", "requires_grad_"})
_KEEPING = frozenset({"append", "add", "insert", "extend", "put", "setattr", "update"})


def look(m: Machine, value: Value, node: ast.Call) -> None:
    """`name = copy.deepcopy(model)`."""
    function = m.frame.node
    if not isinstance(value, Instance | Layer) or not isinstance(function, ast.FunctionDef):
        return
    name = next((name for name, copied in _bound(function) if copied is node), "")
    if name and _is_overwritten(function, name) and not _escapes(function, name):
        fact = Fact(frozenset(), (m.moment(Kind.COPIED, "copy.deepcopy", node),))
        certainty = Certainty.OFTEN_MEANT
        m.put(Kind.COPIED, "copy.deepcopy", node, m.frame, {"copy": fact}, certainty=certainty)


def _bound(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """The names that are given a value, and the value behind methods that give the module itself."""
    for statement in ast.walk(function):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value = statement.value
            while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                if value.func.attr not in _SAME:
                    break
                value = value.func.value
            yield statement.targets[0].id, value


def _is_overwritten(function: ast.FunctionDef, name: str) -> bool:
    """Whether every parameter of the copy gets other memory or another value."""
    for part in ast.walk(function):
        if isinstance(part, ast.Call) and _method(part, name) == "load_state_dict":
            return True
        if isinstance(part, ast.For) and any(
            isinstance(one, ast.Call) and _method(one, name) == "parameters" for one in ast.walk(part.iter)
        ):
            return any(_writes(one) for one in part.body)
    return False


def _writes(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        return any(isinstance(one, ast.Attribute) and one.attr == "data" for one in statement.targets)
    value = statement.value if isinstance(statement, ast.Expr) else None
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "copy_"
    )


def _method(call: ast.Call, name: str) -> str:
    func = call.func
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == name:
        return func.attr
    return ""


def _escapes(function: ast.FunctionDef, name: str) -> bool:
    """Whether the copy may live on: returned, yielded, put somewhere, used by a function inside."""
    return any(_holds(part, name) for part in ast.walk(function))


def _holds(part: ast.AST, name: str) -> bool:
    if isinstance(part, ast.Return | ast.Yield) and part.value is not None:
        return _is_or_contains(part.value, name)
    if isinstance(part, ast.Assign):
        targets = any(not isinstance(one, ast.Name) for one in part.targets)
        return (targets and _is_or_contains(part.value, name)) or _is(part.value, name)
    if isinstance(part, ast.Call):
        called = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
        return (called in _KEEPING or called[:1].isupper()) and any(_mentions(one, name) for one in part.args)
    return isinstance(part, ast.Lambda) and _mentions(part, name)


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_or_contains(node: ast.expr, name: str) -> bool:
    items = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    return any(_is(item, name) for item in items)


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
