"""Data that a program holds in a list and changes in place, once more in each epoch."""

from __future__ import annotations

import ast

from tensafe.facts import Kind
from tensafe.ops import words
from tensafe.static.aliasing.items import converts
from tensafe.static.aliasing.writing import Writing, moment_in
from tensafe.static.values import TENSOR, Memory, Sequence, Value
from tensafe.syntax.reading import Syntax, binds, dotted

_STATISTICS = words("mean std var max min amax amin norm sum median")
_AGAIN = ("sub", "div", "mul", "pow", "exp", "log", "sqrt", "neg", "add")


def item_of_epoch(at: Writing) -> bool:
    """`for epoch in ...: for x in data: x.sub_(x.mean())`, where `data` holds the tensors themselves."""
    if at.target.kind != TENSOR or not isinstance(at.root, ast.Name) or at.statement is None:
        return False
    if not at.op.rpartition(".")[2].rstrip("_").startswith(_AGAIN) or not _normalises(at):
        return False
    loops = _loops(at.syntax, at.statement)
    inner = next((loop for loop in loops if isinstance(loop, ast.For) and binds(loop, at.name)), None)
    if inner is None or inner is loops[-1]:
        return False
    data = _data(inner.iter)
    held = at.frame.scope.get(data.id) if data is not None else None
    if data is None or not _holds_tensors(held):
        return False
    outer = loops[loops.index(inner) + 1]
    if any(isinstance(node, ast.stmt) and binds(node, data.id) for node in ast.walk(outer)):
        return False
    if not converts(at) or at.syntax.read_after(at.statement, at.name) is None:
        return False
    return at.tell("dataset", (moment_in(at.m, at.frame, Kind.VIEWED, "", inner.iter),), data.id)


def _normalises(at: Writing) -> bool:
    """Whether the new values come from statistics of the old ones, or from the largest byte."""
    for node in ast.walk(at.node):
        if isinstance(node, ast.Attribute) and node.attr in _STATISTICS and dotted(node.value) == at.name:
            return True
        if isinstance(node, ast.Constant) and node.value in (255, 255.0, 127.5):
            return True
    return False


def _loops(syntax: Syntax, node: ast.AST) -> list[ast.For | ast.While]:
    """The loops around a node, innermost first."""
    found: list[ast.For | ast.While] = []
    here = syntax.parents.get(node)
    while here is not None and not isinstance(here, ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(here, ast.For | ast.While):
            found.append(here)
        here = syntax.parents.get(here)
    return found


def _data(node: ast.expr) -> ast.Name | None:
    """What a loop runs over: `data` in `data`, and in `enumerate(data)`."""
    if isinstance(node, ast.Call) and dotted(node.func) == "enumerate" and node.args:
        node = node.args[0]
    return node if isinstance(node, ast.Name) else None


def _holds_tensors(value: Value | None) -> bool:
    if type(value) is Memory:
        return value.kind == TENSOR
    if type(value) is not Sequence:
        return False
    item = value.items[0] if value.items else value.rest
    return type(item) is Memory and item.kind == TENSOR and not item.leaf and item.owner is None
