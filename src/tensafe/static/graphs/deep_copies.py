"""`copy.deepcopy` of what has no copy: a tensor with a graph, a lock, an open file, a generator."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tensafe.facts import Certainty, Kind, Moment, StorageId
from tensafe.facts import Value as Fact
from tensafe.static import definitions
from tensafe.static.graphs.known import here, moment_of, past_of, surely_requires_grad
from tensafe.static.values import (
    YES,
    Constant,
    Instance,
    Layer,
    Made,
    Mapping,
    Memory,
    Opaque,
    Sequence,
    State,
    Value,
)

if TYPE_CHECKING:
    from tensafe.static.arguments import Arguments
    from tensafe.static.machine import Machine

DEEPEST = 5
MOST_VALUES = 200
_OWN_COPY = ("__deepcopy__", "__getstate__", "__reduce__", "__reduce_ex__")
UNCOPYABLE = {
    "threading.Lock": "lock",
    "threading.RLock": "RLock",
    "threading.Condition": "lock",
    "threading.Event": "lock",
    "threading.Semaphore": "lock",
    "threading.BoundedSemaphore": "lock",
    "threading.Thread": "lock",
    "threading.local": "_local",
    "_thread.allocate_lock": "lock",
    "queue.Queue": "lock",
    "queue.SimpleQueue": "SimpleQueue",
    "multiprocessing.Lock": "Lock",
    "multiprocessing.Queue": "Queue",
    "torch.multiprocessing.Queue": "Queue",
    "concurrent.futures.ThreadPoolExecutor": "SimpleQueue",
    "socket.socket": "socket",
    "builtins.open": "TextIOWrapper",
    "io.open": "TextIOWrapper",
    "sqlite3.connect": "Connection",
}


class Uncopyable(Opaque):
    """A lock, an open file, a generator: where it was made."""

    __slots__ = ("made",)

    def __init__(self, made: Made) -> None:
        self.made = made


class Found(NamedTuple):
    """Something without a copy inside a copied object: its path, what it is, and what led there."""

    label: str
    note: str
    trail: tuple[Moment, ...]
    storages: tuple[int, ...] = ()


def made(m: Machine, path: str, node: ast.AST) -> Value | None:
    """The result of a call of this dotted name, when it can never be copied."""
    name = UNCOPYABLE.get(path)
    return Uncopyable(here(m, name, node)) if name is not None else None


def copied(m: Machine, value: Value, node: ast.Call) -> None:
    """`copy.deepcopy(value)`."""
    if m.graphs.refusal_expected or m.evaluates:
        return
    text = ast.unparse(node.args[0]) if node.args else ""
    found = next(_inside(m, value, text if len(text) <= 40 else "", DEEPEST, {}), None)
    if found is None:
        return
    note = found.note
    if note == "graph tensor" and type(value) is Memory:
        note = "graph tensor itself"
    elif note == "graph tensor":
        note = "graph tensor inside"
    fact = Fact(frozenset(map(StorageId, found.storages)), found.trail, found.label)
    m.put(Kind.REFUSED, "copy.deepcopy", node, m.frame, {"target": fact}, note=note)
    if note == "graph tensor of a hook":
        certainty = Certainty.OFTEN_MEANT
        m.put(Kind.REFUSED, "copy.deepcopy", node, m.frame, {"target": fact}, certainty=certainty, note=note)


def _inside(m: Machine, value: Value, label: str, depth: int, seen: dict[int, Value]) -> Iterator[Found]:
    if depth == 0 or id(value) in seen or len(seen) > MOST_VALUES:
        return
    seen[id(value)] = value
    if type(value) is Memory:
        if value.grad == YES and not value.leaf and surely_requires_grad(m, value):
            yield Found(label, "graph tensor", past_of(value), value.storages)
    elif type(value) is Uncopyable:
        op = value.made[0]
        yield Found(label, f"no copy of {op}", (moment_of(value.made, Kind.KEPT),))
    elif type(value) is State and value.kind in ("parameters", "named_parameters") and depth == DEEPEST:
        yield Found(label, "no copy of generator", ())
    elif type(value) is Sequence:
        yield from _in_sequence(m, value, label, depth, seen)
    else:
        for name, part in _parts(m, value):
            yield from _inside(m, part, label + name, depth - 1, seen)
        if type(value) is Layer and value.storage in m.graphs.normed:
            yield Found(label + ".weight", "graph tensor of a hook", (m.graphs.normed[value.storage],))


def _in_sequence(
    m: Machine, value: Sequence, label: str, depth: int, seen: dict[int, Value]
) -> Iterator[Found]:
    if value.kind == "generator":
        yield Found(label, "no copy of generator", value.trail[-1:])
        return
    for place, item in enumerate(value.items):
        yield from _inside(m, item, f"{label}[{place}]", depth - 1, seen)
    if value.rest is not None:
        yield from _inside(m, value.rest, label, depth - 1, seen)


def _parts(m: Machine, value: Value) -> list[tuple[str, Value]]:
    """What an object holds, with the text that leads there."""
    if type(value) is Instance:
        if any(definitions.find_method(value.cls, name) for name in _OWN_COPY):
            return []
        return [(f".{name}", part) for name, part in value.attributes.items()]
    if type(value) is Layer:
        held = [(f".{name}", part) for name, part in value.attributes.items()]
        return [*held, *((f"[{place}]", part) for place, part in enumerate(value.children))]
    if type(value) is Mapping:
        parts = [(f"[{key!r}]", part) for key, part in value.items.items()]
        return [*parts, ("", value.rest)] if value.rest is not None else parts
    return []


def weight_normed(m: Machine, given: Arguments, node: ast.AST) -> Value:
    """The older `weight_norm(layer)`: the layer itself, whose weight is computed by a hook from now on."""
    layer = given.get(0, "module")
    name = given.get(1, "name")
    if type(layer) is Layer and (name is None or type(name) is Constant):
        m.graphs.normed[layer.storage] = m.moment(Kind.KEPT, "WeightNorm", node)
    return layer if layer is not None else m.thing()
