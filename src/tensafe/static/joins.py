"""Values that meet: after a branch, in the rest of a list, and one more of the same kind."""

from __future__ import annotations

from tensafe.ops import Dtype
from tensafe.static.forms import joined_form
from tensafe.static.past import Past
from tensafe.static.values import (
    LIKELY,
    NONE,
    NOTHING_KNOWN,
    TENSOR,
    THING,
    YES,
    Choice,
    Constant,
    Memory,
    Opaque,
    Scalar,
    Sequence,
    Value,
)

MOST_OPTIONS = 3
MOST_ITEMS = 12


def join(one: Value, other: Value) -> Value:
    """What a name stands for when it was bound to either."""
    if one is other:
        return one
    if type(one) is Memory and type(other) is Memory:
        return _join_memory(one, other)
    for value, fellow in ((one, other), (other, one)):
        if type(value) is Constant and (value.value is None or type(fellow) is not Constant):
            return _perhaps(fellow) if value.value is None or type(fellow) is Memory else NOTHING_KNOWN
        if type(value) is Opaque or type(value) is Scalar:
            return _perhaps(fellow) if type(fellow) is Memory else value
    if type(one) is Constant and type(other) is Constant:
        return one if one.value == other.value and type(one.value) is type(other.value) else NOTHING_KNOWN
    if type(one) is Sequence and type(other) is Sequence:
        return _join_sequences(one, other)
    options = tuple(dict.fromkeys((*options_of(one), *options_of(other))))
    return Choice(options[:MOST_OPTIONS])


def _perhaps(value: Value) -> Value:
    """A tensor with a graph that is there on one of two ways: the same, but not for certain."""
    if type(value) is not Memory or value.kind != TENSOR or value.grad < YES or value.leaf:
        return value
    twin = Memory(TENSOR, value.storages, value.grad, (value,))
    twin.base, twin.joined = value, True
    twin.exact, twin.hidden, twin.dtype, twin.moved = value.exact, value.hidden, value.dtype, value.moved
    twin.cuts, twin.trail, twin.owner, twin.spread = value.cuts, value.trail, value.owner, value.spread
    twin.data, twin.form, twin.made, twin.children = value.data, value.form, value.made, value.children
    return twin


def options_of(value: Value) -> tuple[Value, ...]:
    """The values of which one is meant."""
    return value.options if type(value) is Choice else (value,)


def _join_memory(one: Memory, other: Memory) -> Memory:
    storages = tuple(dict.fromkeys((*one.storages, *other.storages)))
    kind = one.kind if one.kind == other.kind else THING
    grad = one.grad if one.grad == other.grad else min(LIKELY, max(one.grad, other.grad))
    joined = Memory(kind, storages[:8], grad, (one, other))
    joined.joined = True
    joined.exact = one.exact and other.exact and len(storages) <= 8
    joined.hidden = one.hidden and other.hidden
    joined.moved = one.moved or other.moved
    joined.dtype = one.dtype if one.dtype == other.dtype else Dtype.UNKNOWN
    joined.spread = one.spread and other.spread
    joined.cuts = one.cuts if one.cuts == other.cuts else ()
    joined.trail = one.trail if one.trail == other.trail else ()
    if one.form is not None or other.form is not None:
        joined.form = joined_form(one.form, other.form)
    return joined


def _join_sequences(one: Sequence, other: Sequence) -> Value:
    if len(one.items) == len(other.items) and not one.rest and not other.rest:
        items = [join(a, b) for a, b in zip(one.items, other.items, strict=True)]
        return Sequence(items, None, one.kind)
    longer, shorter = (one, other) if len(one.items) >= len(other.items) else (other, one)
    if type(shorter.rest) is Memory and shorter.rest.form is not None and shorter.rest.form.part is not None:
        last = longer.rest or (longer.items[-1] if longer.items else shorter.rest)
        return Sequence(longer.items, join(last, shorter.rest), longer.kind)
    return longer


def join_all(values: list[Value]) -> Value:
    """One value for all; None when there is none."""
    if not values:
        return NONE
    joined = values[0]
    for value in values[1:]:
        joined = join(joined, value)
    return joined


def another(value: Value, past: Past) -> Value:
    """A further item of the kind of `value`, with memory of its own."""
    if type(value) is Memory:
        twin = Memory(value.kind, (past.storage(),), value.grad, value.parents)
        twin.dtype, twin.cuts, twin.trail, twin.leaf = value.dtype, value.cuts, value.trail, value.leaf
        twin.owner, twin.exact, twin.form = value.owner, value.exact, value.form
        for storage in value.storages[:1]:
            if storage in past.inside:
                past.put_inside(twin.storages[0], past.inside[storage])
        return twin
    if type(value) is Sequence and value.kind == "tuple":
        return Sequence([another(item, past) for item in value.items], value.rest, "tuple")
    return value
