"""Calls that cannot be looked into: what they return, and what they may do to a model."""

from __future__ import annotations

from tensafe.facts import Kind, Moment
from tensafe.static.arguments import Arguments
from tensafe.static.machine import Machine
from tensafe.static.operations import cuts_of, tensors_of
from tensafe.static.past import Write
from tensafe.static.values import LIKELY, NONE, THING, Instance, Layer, Memory, Value

_TRAINS = ("train", "fit", "optimi", "epoch", "update", "step")


def unknown(m: Machine, given: Arguments, name: str = "", receiver: Value = NONE) -> Memory:
    """The result of something that cannot be looked into."""
    values = given.all
    if name:
        unknown_call(m, name, receiver, values)
    tensors = tensors_of([*values, receiver])
    grad = min(LIKELY, max((tensor.grad for tensor in tensors), default=0))
    result = m.fresh(THING, grad, tuple(tensors[:8]))
    if tensors:
        result.cuts = cuts_of([*values, receiver])
    return result


def storage_of(value: Value) -> tuple[int, ...]:
    """The memory of a module."""
    if isinstance(value, Instance | Layer):
        return (value.storage,)
    return value.storages if type(value) is Memory else ()


def unknown_call(m: Machine, name: str, receiver: Value, values: list[Value]) -> None:
    """A call that cannot be looked into, and may train the model it is given."""
    if name == "backward":
        for value in values:
            m.hazards.used(value, None, backward=True)
    if any(word in name.lower() for word in _TRAINS):
        for value in values:
            if isinstance(value, Instance | Layer) or (type(value) is Memory and value.kind == THING):
                write = Write(Moment(Kind.WRITTEN, name, None, m.past.tick()), m.path)
                m.past.write(storage_of(value), write)
