"""What a loop runs over: the items one by one where they are few, else two that stand for all."""

from __future__ import annotations

from collections.abc import Callable

from tensafe.static.costs import parts
from tensafe.static.graphs import refused_writes
from tensafe.static.graphs.known import is_frozen
from tensafe.static.joins import another
from tensafe.static.machine import Machine
from tensafe.static.past import Past
from tensafe.static.values import (
    ARRAY,
    NO,
    NOTHING_KNOWN,
    TENSOR,
    THING,
    UNKNOWN,
    YES,
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

MOST_ROUNDS = 3
MOST_MODULES = 12


def rounds(m: Machine, value: Value) -> list[Value]:
    """The items that a loop is interpreted with, in order."""
    items = items_of(m, value)
    if items is not None:
        most = MOST_MODULES if items and isinstance(items[0], Layer | Instance) else MOST_ROUNDS
        return items[:most]
    return [item_at(m, value, 0), item_at(m, value, 1)]


def items_of(m: Machine, value: Value) -> list[Value] | None:
    """All items, when the source says which."""
    if type(value) is Sequence and value.rest is None:
        return value.items
    if type(value) is Mapping and value.rest is None:
        return [Constant(key) for key in value.items]
    if type(value) is Layer and value.children:
        return value.children
    if type(value) is Constant and isinstance(value.value, str | bytes):
        return [NOTHING_KNOWN]
    if type(value) is Constant:
        return []
    return None


def item_at(m: Machine, value: Value, place: int) -> Value:
    """The item at this place of something whose length is not known."""
    if type(value) is Sequence:
        return _of_sequence(m.past, value, place)
    if type(value) is Memory:
        return _of_memory(m, value, place)
    if type(value) is State:
        return of_state(m, value, place)
    if type(value) is Mapping or type(value) is Instance or type(value) is Choice:
        return NOTHING_KNOWN
    if type(value) is Scalar:
        return NOTHING_KNOWN
    return NOTHING_KNOWN


def _of_sequence(past: Past, value: Sequence, place: int) -> Value:
    if place < len(value.items):
        return value.items[place]
    if value.rest is None:
        return value.items[-1] if value.items else NOTHING_KNOWN
    if place > len(value.items):
        value.items.append(another(value.rest, past))
    return value.rest


def _of_memory(m: Machine, value: Memory, place: int) -> Value:
    if value.kind == TENSOR or value.kind == ARRAY:
        item = view_of(value)
        if value.kind == TENSOR:
            item.form = parts.of_item(m, value)
        item.maybe_number = value.kind == ARRAY
        item.spread = False  # an item of one dimension has none, and how many there were is not known
        if value.grad == YES and value.kind == TENSOR:
            refused_writes.iterated(m, item, value)
        return item
    return child(m, value, ("item", place))


def view_of(value: Memory) -> Memory:
    """Another tensor over the same memory, in the same graph."""
    view = Memory(value.kind, value.storages, value.grad, (value,))
    view.base = value
    view.exact, view.hidden, view.dtype, view.moved = value.exact, value.hidden, value.dtype, value.moved
    view.cuts, view.trail, view.owner, view.spread = value.cuts, value.trail, value.owner, value.spread
    view.data = value.data
    if value.form is not None:
        view.form = value.form.carried
    return view


def child(m: Machine, value: Memory, key: object, make: Callable[[], Value] | None = None) -> Value:
    """The part of an unknown thing under this key: always the same one."""
    if value.children is None:
        value.children = {}
    if key not in value.children:
        part = make() if make else m.thing()
        if type(part) is Memory and value.storages:
            m.past.put_inside(part.storages[0], value.storages[0])
            part.owner = value.owner or value
            part.exact = value.exact and key != ("item", "any")
            part.moved = value.moved
            part.grad = max(part.grad, min(value.grad, UNKNOWN))
            if value.trail and type(part) is Memory:
                part.trail = value.trail
        value.children[key] = part
    return value.children[key]


def of_state(m: Machine, state: State, place: object) -> Value:
    """One tensor of a live state: it lies in the module's memory."""
    parameter = _parameter(m, state, place)
    if state.kind == "named_parameters":
        return Sequence([NOTHING_KNOWN, parameter], None, "tuple")
    return NOTHING_KNOWN if state.kind == "state_dict" and isinstance(place, int) else parameter


def _parameter(m: Machine, state: State, place: object) -> Memory:
    parameter = m.fresh(
        TENSOR if isinstance(state.owner, Layer | Instance) or isinstance(place, int) else THING
    )
    frozen = any(is_frozen(m, storage) for storage in state.storages)
    parameter.grad = YES if state.kind != "state_dict" and not frozen else NO
    parameter.storages = state.storages
    parameter.leaf = True
    parameter.trail = state.trail
    parameter.owner = state.owner
    return parameter
