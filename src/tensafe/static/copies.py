"""`copy.deepcopy` and `copy.copy` of abstract values."""

from __future__ import annotations

import ast

from tensafe.facts import Kind
from tensafe.static.aliasing import ties
from tensafe.static.arguments import Arguments
from tensafe.static.graphs import deep_copies, known, wasted_copies
from tensafe.static.machine import Machine
from tensafe.static.unknowns import unknown
from tensafe.static.values import (
    TENSOR,
    Choice,
    Instance,
    Layer,
    Mapping,
    Memory,
    Optimizer,
    Sequence,
    State,
    Value,
)

DEEPEST_COPY = 6


def copy_of(m: Machine, given: Arguments, node: ast.Call, deep: bool) -> Value:
    """The copy of the first argument."""
    if not given.positional:
        return unknown(m, given)
    value = given.positional[0]
    if deep:
        deep_copies.copied(m, value, node)
        wasted_copies.look(m, value, node)
    if not deep:
        return _shallow(m, value, node)
    twin = deep_copy(m, value, {}, DEEPEST_COPY)
    ties.parts_copied(m, value, node)
    ties.instance_copied(m, value, twin, node)
    ties.optimizer_copied(m, twin, node)
    return twin


def _shallow(m: Machine, value: Value, node: ast.Call) -> Value:
    if type(value) is State:
        return value
    if type(value) is Memory and value.kind == TENSOR:
        return value
    if isinstance(value, Instance | Layer):
        twin = State("module", value, (value.storage,), (m.moment(Kind.KEPT, "copy.copy", node),))
        return twin
    return value


def deep_copy(m: Machine, value: Value, done: dict[int, Value], depth: int) -> Value:
    """A value of the same make with memory of its own."""
    if id(value) in done:
        return done[id(value)]
    if depth == 0:
        return value
    twin = _twin(m, value, done, depth)
    done.setdefault(id(value), twin)
    return twin


def _twin(m: Machine, value: Value, done: dict[int, Value], depth: int) -> Value:
    if type(value) is Memory:
        memory = Memory(value.kind, (m.past.storage(),), value.grad, () if value.leaf else (value,))
        memory.leaf, memory.dtype, memory.spread = value.leaf, value.dtype, value.spread
        return memory
    if type(value) is State:
        memory = m.fresh(TENSOR)
        return Mapping({}, memory)
    if type(value) is Sequence:
        items = [deep_copy(m, item, done, depth - 1) for item in value.items]
        rest = deep_copy(m, value.rest, done, depth - 1) if value.rest else None
        return Sequence(items, rest, value.kind)
    if type(value) is Mapping:
        held = {key: deep_copy(m, item, done, depth - 1) for key, item in value.items.items()}
        return Mapping(held, deep_copy(m, value.rest, done, depth - 1) if value.rest else None)
    if type(value) is Choice:
        return Choice(tuple(deep_copy(m, option, done, depth - 1) for option in value.options))
    if isinstance(value, Instance | Layer | Optimizer):
        return _twin_object(m, value, done, depth)
    return value


def _twin_object(m: Machine, value: Value, done: dict[int, Value], depth: int) -> Value:
    storage = m.past.storage()
    if isinstance(value, Instance | Layer) and known.is_frozen(m, value.storage):
        m.graphs.frozen.add(storage)
    if type(value) is Instance:
        instance = Instance(value.cls, storage)
        done[id(value)] = instance
        for name, item in value.attributes.items():
            instance.attributes[name] = _inside(m, deep_copy(m, item, done, depth - 1), storage)
        return instance
    if type(value) is Layer:
        layer = Layer(value.name, value.op, storage)
        layer.inplace, layer.options = value.inplace, value.options
        layer.children = [_inside(m, deep_copy(m, one, done, depth - 1), storage) for one in value.children]
        return layer
    assert type(value) is Optimizer
    return Optimizer(value.name, (), storage, value.fused)


def _inside(m: Machine, value: Value, storage: int) -> Value:
    if isinstance(value, Instance | Layer):
        m.past.put_inside(value.storage, storage)
    elif type(value) is Memory and value.leaf:
        m.past.put_inside(value.storages[0], storage)
    return value
