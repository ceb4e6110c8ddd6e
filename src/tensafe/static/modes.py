"""Contexts and decorators that switch recording on or off."""

from __future__ import annotations

import ast

from tensafe.static.machine import Machine
from tensafe.static.values import Library

NO_GRAD = frozenset({"no_grad", "inference_mode", "_no_grad"})


def grad_mode(m: Machine, node: ast.expr) -> bool | None:
    """Whether a context or decorator switches recording on or off, None when it does neither."""
    call = node if isinstance(node, ast.Call) else None
    value = m.eval(call.func if call else node)
    path = value.path if type(value) is Library else ""
    name = path.rpartition(".")[2]
    if not path.startswith("torch"):
        return None
    if name in NO_GRAD:
        off = not (
            call and call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is False
        )
        return not off and m.grad_on
    if name == "enable_grad":
        return True
    if name == "set_grad_enabled":
        argument = call.args[0] if call and call.args else None
        if isinstance(argument, ast.Constant):
            return bool(argument.value)
        return m.grad_on
    return None
