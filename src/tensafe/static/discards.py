"""Writes into copies that nobody keeps."""

from __future__ import annotations

import ast

from tensafe.facts import Kind, StorageId
from tensafe.facts import Value as Fact
from tensafe.ops import Dtype, out_of_place, words
from tensafe.static.indexing import ADVANCED, kind_of_index
from tensafe.static.machine import Machine
from tensafe.static.values import (
    ARRAY,
    NO,
    TENSOR,
    THING,
    YES,
    Instance,
    Layer,
    Mapping,
    Memory,
    Sequence,
    Value,
)

_COPYING = frozenset({"index_select", "masked_select"})


def dropped(m: Machine, node: ast.expr, value: Value) -> None:
    """An expression statement whose value is dropped: `x[mask].zero_()`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    if out_of_place(node.func.attr) is None:
        return
    copied = copying(m, node.func.value)
    if copied is not None:
        _ask(m, copied, f"Tensor.{node.func.attr}", node)


def lost_store(m: Machine, target: ast.Subscript) -> None:
    """`x[mask][...] = v`."""
    copied = copying(m, target.value)
    if copied is not None:
        _ask(m, copied, "Tensor.__setitem__", target)


def copying(m: Machine, node: ast.expr) -> ast.expr | None:
    """The index (or gathering call) in a chain of views that makes the copy written into."""
    while True:
        if isinstance(node, ast.Subscript):
            if copies(m, node):
                return node
            node = node.value
        elif isinstance(node, ast.Attribute) and node.attr in ("data", "T", "mT"):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _COPYING:
                return node
            if node.func.attr not in _VIEWS:
                return None
            node = node.func.value
        else:
            return None


_VIEWS = words("view unsqueeze squeeze transpose permute detach narrow select t")


def copies(m: Machine, node: ast.Subscript) -> bool:
    """Whether this subscript certainly copies."""
    if isinstance(node.slice, ast.Slice):
        return False
    if kind_of_index(m.eval(node.slice)) != ADVANCED:
        return False
    owner = m.eval(node.value)
    if isinstance(owner, Sequence | Mapping | Instance | Layer):
        return False
    return type(owner) is Memory and (owner.kind in (TENSOR, ARRAY) or owner.kind == THING)


def _in_graph(m: Machine, copied: ast.expr) -> bool | None:
    """Whether the tensor that the copy was taken from has a history, None when that is not known."""
    source = copied.func if isinstance(copied, ast.Call) else copied
    original = m.eval(source.value) if isinstance(source, ast.Subscript | ast.Attribute) else None
    if type(original) is not Memory or original.kind == THING:
        return None
    if m.past.saved(original.storages, m.path):
        return None  # in none itself, but the backward of another reads it
    if original.kind == ARRAY or original.dtype in (Dtype.BOOL, Dtype.INTEGER):
        return False
    if original.grad == YES:
        return True
    return False if original.data and original.grad == NO else None


def _ask(m: Machine, copied: ast.expr, op: str, node: ast.expr) -> None:
    how = (
        f"`{copied.func.attr}`"
        if isinstance(copied, ast.Call) and isinstance(copied.func, ast.Attribute)
        else ""
    )
    made = m.moment(Kind.COPIED, how or "advanced indexing", copied)
    written = m.moment(Kind.WRITTEN, op, node)
    fact = Fact(frozenset({StorageId(m.past.storage())}), (made, written), in_graph=_in_graph(m, copied))
    m.put(Kind.DISCARDED, op, node, m.frame, {"written": fact})
