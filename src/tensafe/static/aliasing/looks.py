"""What is asked of every write: the first look that finds something ends the round."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tensafe.facts import Moment
from tensafe.static.aliasing.callers import callers_argument
from tensafe.static.aliasing.epochs import item_of_epoch
from tensafe.static.aliasing.hooks import overwritten_output
from tensafe.static.aliasing.items import converted_data, fetched_item
from tensafe.static.aliasing.layers import overwritten_input
from tensafe.static.aliasing.names import (
    batch_field,
    default_argument,
    own_attribute,
    shallow_copy,
    two_names,
)
from tensafe.static.aliasing.overlaps import overlapping_write
from tensafe.static.aliasing.repeats import written_in_one_place
from tensafe.static.aliasing.sides import other_side
from tensafe.static.aliasing.ties import stale_write, unlinked_write
from tensafe.static.aliasing.writing import Writing
from tensafe.static.machine import Machine
from tensafe.static.values import ARRAY, POINTER, Memory

_LOOKS: tuple[Callable[[Writing], bool], ...] = (
    overlapping_write,
    written_in_one_place,
    unlinked_write,
    stale_write,
    fetched_item,
    default_argument,
    batch_field,
    other_side,
    two_names,
    item_of_epoch,
    shallow_copy,
    own_attribute,
    converted_data,
    callers_argument,
)


def _may_be_number(target: Memory, node: ast.AST) -> bool:
    """What NumPy gave may be a number, an item or a sum, which `x -= 1` does not change but replaces."""
    if target.kind != ARRAY or not isinstance(node, ast.AugAssign) or not isinstance(node.target, ast.Name):
        return False
    return target.base is not None or not target.trail


def written(m: Machine, target: Memory, op: str, node: ast.AST, moment: Moment) -> None:
    """`op` at a node has just written through `target`."""
    if target.kind == POINTER or not target.storages or _may_be_number(target, node):
        return
    at = Writing(m, target, op, node, moment)
    if m.books.hook_kept and overwritten_output(at):
        return
    if at.by_layer:
        overwritten_input(at)
        return
    if at.root is not None:
        any(look(at) for look in _LOOKS)
