"""What the source does with shared memory: collects it, updates it on purpose, reads the older one again."""

from __future__ import annotations

import ast

from tensafe.runtime.places.frames import Place
from tensafe.runtime.places.reading import read_after
from tensafe.runtime.places.source import expressions_at, syntax_of
from tensafe.runtime.places.writing import scope_of, statement_at, target_at
from tensafe.syntax.chains import root_of
from tensafe.syntax.reading import binds, dotted

KEEPERS = frozenset({"append", "insert", "add", "appendleft", "setdefault", "extend"})
NEW_DATA = frozenset({"add_", "lerp_", "copy_", "addcmul_", "addcdiv_", "maximum_"})
SETS = {
    "__setitem__",
    "copy_",
    "fill_",
    "zero_",
    "scatter_",
    "index_put_",
    "index_add_",
    "scatter_add_",
    "masked_fill_",
}


def keeps_result(place: Place) -> bool:
    """Whether the value made at a place goes straight into a container: `path.append(x.numpy())`."""
    syntax = syntax_of(place[0].co_filename)
    nodes = expressions_at(place)
    node: ast.AST | None = nodes[0] if nodes else None
    while syntax is not None and node is not None and node in syntax.parents:
        child, node = node, syntax.parents[node]
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if child in node.args and called in KEEPERS:
                return True
            if child in node.args or called in ("copy", "item", "tolist", "astype", "mean", "sum"):
                return False
        elif not isinstance(
            node, ast.Attribute | ast.Tuple | ast.Dict | ast.List | ast.Subscript | ast.keyword
        ):
            return False
    return False


def reads_first_again(first: Place, second: Place) -> bool:
    """Whether the array that `first` binds to a name is read after `second` bound another to another name."""
    if first[0] is not second[0] or first == second:
        return False
    one, two = statement_at(first), statement_at(second)
    name, other = _bound_name(one), _bound_name(two)
    if one is None or two is None or not name or not other or name == other:
        return False
    scope = scope_of(first, one)
    rebound = scope is not None and any(
        isinstance(node, ast.stmt) and node is not one and binds(node, name) for node in ast.walk(scope)
    )
    return not rebound and read_after(second, two, name) is not None


def _bound_name(statement: ast.stmt | None) -> str:
    """The name that a statement binds to the array itself: a `.copy()` at the end makes another."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return ""
    value = statement.value
    ends = (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "numpy"
    )
    return statement.targets[0].id if ends else ""


def updates(place: Place, op: str) -> bool:
    """Whether the write at a place brings new data into a buffer, rather than converting what is there."""
    if op.rpartition(".")[2] in SETS:
        return True
    node = target_at(place)
    root = root_of(node) if node is not None else None
    scope = scope_of(place, node) if node is not None else None
    if root is None or scope is None:
        return True
    return brings_data(scope, dotted(root))


def brings_data(scope: ast.AST, name: str) -> bool:
    """Whether a function adds anything to this tensor that does not come from the tensor itself."""
    return any(_brings_data(part, name) for part in ast.walk(scope))


def _brings_data(part: ast.AST, name: str) -> bool:
    if isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Add):
        return _root_name(part.target) == name and not _mentions([part.value], name)
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in NEW_DATA:
        return _root_name(part.func.value) == name and not _mentions(part.args, name)
    return False


def _root_name(node: ast.expr) -> str:
    root = root_of(node)
    return dotted(root) if root is not None else ""


def _mentions(parts: list[ast.expr], name: str) -> bool:
    """Whether the new value comes from the tensor itself, or is but a number."""
    nodes = [node for part in parts for node in ast.walk(part)]
    return any(
        isinstance(node, ast.Name | ast.Attribute) and dotted(node) == name for node in nodes
    ) or not any(isinstance(node, ast.Name) for node in nodes)
