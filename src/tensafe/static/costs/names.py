"""The dotted name of what is called, through the imports of the file."""

from __future__ import annotations

import ast

from tensafe.static.machine import Machine
from tensafe.static.values import Library


def path_of(m: Machine, node: ast.expr) -> str:
    """`torch.nn.functional.relu` for `F.relu`; "" for what is no name of a library."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    found = m.look_up(node.id) if isinstance(node, ast.Name) else None
    return ".".join([found.path, *reversed(names)]) if type(found) is Library else ""
