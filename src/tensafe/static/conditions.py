"""Conditions: what is known of their truth, and a key by which two of them are the same question."""

from __future__ import annotations

import ast

from tensafe.static.evaluation import QUESTIONS, is_without_target, operands
from tensafe.static.machine import Machine
from tensafe.static.values import (
    Choice,
    Class,
    Constant,
    Function,
    Instance,
    Layer,
    Library,
    Mapping,
    Memory,
    Optimizer,
    Path,
    Scalar,
    Sequence,
    Value,
)

_OBJECTS = (Instance, Layer, Optimizer, Function, Class)


def truth(m: Machine, node: ast.expr, value: Value) -> bool | None:
    """True or False where the source decides it, None otherwise."""
    if type(value) is Constant:
        return bool(value.value)
    if type(value) is Sequence and value.rest is None and value.items:
        return True
    if isinstance(value, _OBJECTS):
        return True
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = truth(m, node.operand, m.eval(node.operand))
        return None if inner is None else not inner
    return None


def compare(m: Machine, node: ast.Compare, left: Value, right: Value) -> bool | None:
    """The truth of `left op right` where both are known well enough."""
    op = node.ops[0]
    negated = isinstance(op, ast.IsNot | ast.NotEq | ast.NotIn)
    answer = _same(op, left, right)
    return None if answer is None else answer != negated


def _same(op: ast.cmpop, left: Value, right: Value) -> bool | None:
    if type(left) is Constant and type(right) is Constant:
        if isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            return bool(left.value == right.value)
        return None
    if isinstance(op, ast.Is | ast.IsNot):
        for value, fellow in ((left, right), (right, left)):
            if type(value) is Constant and value.value is None:
                return _is_none(fellow)
    if isinstance(op, ast.In | ast.NotIn) and type(left) is Constant and type(right) is Sequence:
        return _is_in(left, right)
    return None


def _is_in(value: Constant, owner: Sequence) -> bool | None:
    if owner.rest is not None or not all(type(item) is Constant for item in owner.items):
        return None
    return any(type(item) is Constant and item.value == value.value for item in owner.items)


def _is_none(value: Value) -> bool | None:
    if isinstance(value, (*_OBJECTS, Sequence, Mapping, Scalar)):
        return False
    if type(value) is Memory and value.kind != "thing":
        return False
    if type(value) is Library or type(value) is Choice:
        return None
    return None


def key_of(m: Machine, node: ast.expr) -> tuple[object, bool]:
    """A key that equal questions share, and whether the first arm means yes to it."""
    positive = True
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node, positive = node.operand, not positive
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        op, right = node.ops[0], node.comparators[0]
        name = _dotted(node.left)
        if (
            name
            and isinstance(right, ast.Constant)
            and isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq)
        ):
            if isinstance(op, ast.IsNot | ast.NotEq):
                positive = not positive
            return f"{m.frame.label}:{name}=={right.value!r}", positive
    name = _dotted(node)
    if isinstance(node, ast.Call) and not node.args:
        called = _dotted(node.func).rpartition(".")[2]
        name = f"{called}()" if called in QUESTIONS else ""
    if name:
        return f"{m.frame.label}:{name}", positive
    return (id(node), m.past.tick()), positive


def implied(m: Machine, node: ast.If, answer: bool) -> Path:
    """What else is known in an arm: the parts of its condition, and perhaps that nothing is trained there."""
    parts = operands(node.test, answer)
    path: list[tuple[object, int]] = []
    for part, holds in parts if len(parts) > 1 else ():
        key, positive = key_of(m, part)
        if isinstance(key, str):
            path.append((key, positive == holds))
    scope = m.frame.scope

    def is_argument(name: str) -> bool:
        value = scope.get(name)
        return type(value) is Memory and value.label == name

    if is_without_target(is_argument, node.test, node.body, answer):
        path.append((f"{m.frame.label}:{ast.unparse(node.test)}: training", False))
    return tuple(path)


def tensor_asked_for(test: ast.expr) -> str:
    """The name in `isinstance(name, torch.Tensor)`, or nothing."""
    if not isinstance(test, ast.Call) or len(test.args) != 2 or _dotted(test.func) != "isinstance":
        return ""
    value, kind = test.args
    is_tensor = _dotted(kind).rpartition(".")[2] == "Tensor"
    return value.id if is_tensor and isinstance(value, ast.Name) else ""


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""
