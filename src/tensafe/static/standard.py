"""`functools.reduce` and the functions of `operator`, which stand for operators."""

from __future__ import annotations

import ast

from tensafe.ops import OPS, Op
from tensafe.static import operations
from tensafe.static.arguments import Arguments
from tensafe.static.calls import dispatch
from tensafe.static.iteration import rounds
from tensafe.static.machine import Machine
from tensafe.static.values import TENSOR, Memory, Value

_OPERATIONS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "matmul": "matmul",
    "pow": "pow",
    "neg": "neg",
}


def call(m: Machine, path: str, given: Arguments, node: ast.Call) -> Value | None:
    """The result, None when it is another function."""
    if path == "functools.reduce" and len(given.positional) >= 2:
        return _reduced(m, given, node)
    if not path.startswith("operator."):
        return None
    name = path.removeprefix("operator.")
    if name in _OPERATIONS:
        return operations.elementwise(m, _OPERATIONS[name], given.positional, node)
    base = _OPERATIONS.get(name.removeprefix("i")) if name.startswith("i") else None
    target = given.get(0, "a")
    if base is None or type(target) is not Memory or target.kind != TENSOR:
        return None
    return operations.in_place(m, OPS.get(base) or Op(base), target, given.positional[1:], node)


def _reduced(m: Machine, given: Arguments, node: ast.Call) -> Value:
    function, items, *first = given.positional
    values = [*first, *rounds(m, items)]
    total = values[0] if values else m.thing()
    for value in values[1:]:
        total = dispatch(m, function, Arguments([total, value]), node)
    return total
