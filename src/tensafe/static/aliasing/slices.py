"""Whether two subscripts of one tensor select overlapping but different elements."""

from __future__ import annotations

import ast
from typing import NamedTuple

END = 1 << 30
"""Stands for the length of a dimension, which source does not tell."""


class Shift(NamedTuple):
    """How two overlapping selections lie to each other."""

    outermost: bool  # along the first dimension, so that both are dense ranges, which PyTorch compares
    forward: bool  # what is written lies after what is read, so that it is overwritten before it is read


def overlap(written: ast.expr, read: ast.expr) -> Shift | None:
    """The shift between two selections; None when they are equal, apart, or cannot be compared."""
    one, other = _parts(written), _parts(read)
    if len(one) != len(other):
        return None
    shift: Shift | None = None
    for place, (mine, its) in enumerate(zip(one, other, strict=True)):
        if ast.dump(mine) == ast.dump(its):
            continue
        if shift is not None or not isinstance(mine, ast.Slice) or not isinstance(its, ast.Slice):
            return None
        delta = _meet(mine, its)
        if delta is None:
            return None
        shift = Shift(place == 0, delta > 0)
    return shift


def _parts(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _meet(one: ast.Slice, other: ast.Slice) -> int | None:
    """By how much one range lies after the other, if they overlap in a long enough dimension."""
    if one.step is not None or other.step is not None:
        return None
    first, last = _bound(one.lower, 0), _bound(one.upper, END)
    start, stop = _bound(other.lower, 0), _bound(other.upper, END)
    if first is None or last is None or start is None or stop is None:
        return None
    if (first >= END // 2) != (start >= END // 2) or first == start:
        return None
    return first - start if max(first, start) < min(last, stop) else None


def _bound(node: ast.expr | None, default: int) -> int | None:
    """A bound of a slice as a place; negative ones count from the end."""
    if node is None:
        return default
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node, sign = node.operand, -1
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value if sign == 1 else END - node.value
    return None
