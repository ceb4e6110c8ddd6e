"""Reading an item: a view, a copy, or the part of a container."""

from __future__ import annotations

import ast

from tensafe.facts import Kind
from tensafe.ops import Dtype
from tensafe.static.aliasing import workers
from tensafe.static.costs import parts
from tensafe.static.graphs import keeping, refused_writes
from tensafe.static.indexing import ADVANCED, BASIC, Slice, key_of_index, kind_of_index
from tensafe.static.iteration import child, item_at, items_of, of_state, view_of
from tensafe.static.joins import join_all
from tensafe.static.machine import Machine
from tensafe.static.values import (
    ARRAY,
    NOTHING_KNOWN,
    POINTER,
    TENSOR,
    Choice,
    Constant,
    Instance,
    Layer,
    Mapping,
    Memory,
    Scalar,
    Sequence,
    State,
    Value,
)


def subscript(m: Machine, node: ast.Subscript) -> Value:
    return load(m, m.eval(node.value), m.eval(node.slice), node)


def slice_(m: Machine, node: ast.Slice) -> Value:
    bounds = (node.lower, node.upper, node.step)
    return Slice(*(None if bound is None else m.eval(bound) for bound in bounds))


def load(m: Machine, owner: Value, index: Value, node: ast.Subscript | None) -> Value:
    """`owner[index]`; `node` names the place where a copy is made."""
    if type(owner) is Memory:
        return _from_memory(m, owner, index, node)
    if type(owner) is Sequence:
        return _from_sequence(m, owner, index)
    if type(owner) is Mapping:
        return _from_mapping(m, owner, index)
    if type(owner) is State:
        return of_state(m, owner, key_of_index(index))
    if type(owner) is Choice:
        return join_all([load(m, option, index, node) for option in owner.options])
    if type(owner) is Layer:
        return _from_layer(owner, index)
    if type(owner) is Instance and node is not None:
        return workers.fetch(m, owner, index, node)
    return NOTHING_KNOWN


def _from_layer(owner: Layer, index: Value) -> Value:
    place = index.value if type(index) is Constant else None
    if isinstance(place, int) and -len(owner.children) <= place < len(owner.children):
        return owner.children[place]
    return owner.children[0] if owner.children else NOTHING_KNOWN


def _from_memory(m: Machine, owner: Memory, index: Value, node: ast.Subscript | None) -> Value:
    if owner.kind == POINTER:
        return Scalar()
    if owner.kind in (TENSOR, ARRAY):
        return item_of_tensor(m, owner, index, node)
    kind = kind_of_index(index)
    if kind == ADVANCED:
        return item_of_tensor(m, owner, index, node)
    if type(index) is Slice or (type(index) is Sequence and index.kind == "tuple" and kind == BASIC):
        view = view_of(owner)
        view.exact = owner.exact and type(index) is not Slice
        if node is not None and parts.is_of_tensor(node.value):
            view.form = parts.of_index(m, owner, index, node)
        return view
    return child(m, owner, ("item", key_of_index(index)))


def item_of_tensor(m: Machine, owner: Memory, index: Value, node: ast.Subscript | None) -> Memory:
    """An item of a tensor or an array."""
    kind = kind_of_index(index)
    if kind == BASIC:
        view = view_of(owner)
        view.spread = owner.spread and type(index) is Slice
        if owner.kind == TENSOR:
            view.form = parts.of_index(m, owner, index, node)
        refused_writes.viewed(m, view, owner, node)
        return view
    copied = m.fresh(owner.kind, owner.grad, (owner,))
    copied.dtype, copied.cuts = owner.dtype, owner.cuts
    if kind == ADVANCED:
        if node is not None:
            copied.trail = (m.moment(Kind.COPIED, "advanced indexing", node),)
        copied.spread = owner.dtype is not Dtype.UNKNOWN
        return copied
    copied.storages = (*owner.storages, *copied.storages)
    copied.exact = False
    copied.base, copied.trail = owner, owner.trail
    return copied


def _from_sequence(m: Machine, owner: Sequence, index: Value) -> Value:
    if type(index) is Slice:
        return _sliced(owner, index)
    place = index.value if type(index) is Constant else None
    if isinstance(place, int) and not isinstance(place, bool):
        if -len(owner.items) <= place < len(owner.items) and (place >= 0 or owner.rest is None):
            return owner.items[place]
        return item_at(m, owner, 1 if place else 0)
    items = items_of(m, owner)
    return join_all([*(items or owner.items), *([owner.rest] if owner.rest else [])])


def _sliced(owner: Sequence, index: Slice) -> Sequence:
    selected = index.of(owner.items) if owner.rest is None else None
    if selected is not None:
        return Sequence(selected, None, owner.kind)
    return Sequence([], owner.rest or join_all(list(owner.items)), owner.kind)


def _from_mapping(m: Machine, owner: Mapping, index: Value) -> Value:
    if type(index) is Constant and index.value in owner.items:
        return owner.items[index.value]
    if owner.factory:
        return keeping.default_of(owner, index)
    if owner.rest is not None:
        return owner.rest
    return join_all(list(owner.items.values())) if owner.items else NOTHING_KNOWN
