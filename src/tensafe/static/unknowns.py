"""Calls that cannot be looked into: what they return, and what they may do to a model."""

from __future__ import annotations

import re

from tensafe.facts import Kind, Moment
from tensafe.static.arguments import Arguments
from tensafe.static.machine import Machine
from tensafe.static.operations import cuts_of, tensors_of
from tensafe.static.past import Write
from tensafe.static.values import LIKELY, NONE, NOTHING_KNOWN, THING, Instance, Layer, Memory, Value

_TRAINS = ("train", "fit", "optimi", "epoch", "update", "step")
# What is called like this only looks at a model.
_LOOKS = re.compile(
    r"print|log|info|summary|save|dump|watch|count|num|size|flop|profile|plot|show|draw|test|eval|valid|check"
    r"|assert|device|param|compile|deepcopy|train|fit|epoch|step|loss|predict|score",
    re.IGNORECASE,
)
_DEEPEST = 4


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
    if not _LOOKS.search(name):
        for value in values:
            if isinstance(value, Instance | Layer):
                m.graphs.handed.add(value.storage)
                _forget_state(m, value, _DEEPEST)
    if any(word in name.lower() for word in _TRAINS):
        for value in values:
            if isinstance(value, Instance | Layer) or (type(value) is Memory and value.kind == THING):
                write = Write(Moment(Kind.WRITTEN, name, None, m.past.tick()), m.path)
                m.past.write(storage_of(value), write)


def _forget_state(m: Machine, module: Value, depth: int) -> None:
    """What a forward left on a module may be reset by whoever is given it."""
    if type(module) is Layer:
        for child in module.children if depth else ():
            _forget_state(m, child, depth - 1)
    elif type(module) is Instance and depth:
        for name, value in list(module.attributes.items()):
            if type(value) is Memory and value.grad >= LIKELY and not value.leaf:
                m.bind(module.attributes, name, NOTHING_KNOWN)
            elif isinstance(value, Instance | Layer):
                _forget_state(m, value, depth - 1)
