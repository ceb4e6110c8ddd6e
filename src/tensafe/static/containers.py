"""Lists and dicts: what their methods put in and take out."""

from __future__ import annotations

import ast

from tensafe.static.aliasing import histories, repeats, workers
from tensafe.static.arguments import Arguments
from tensafe.static.costs import kept_parts
from tensafe.static.graphs import finished, keeping
from tensafe.static.iteration import items_of, rounds
from tensafe.static.joins import MOST_ITEMS, join, join_all
from tensafe.static.machine import Machine
from tensafe.static.unknowns import unknown
from tensafe.static.values import (
    NONE,
    NOTHING_KNOWN,
    Choice,
    Constant,
    Instance,
    Layer,
    Mapping,
    Sequence,
    Value,
)


def flattened(given: Arguments, m: Machine) -> list[Value]:
    """The modules handed to `Sequential(*layers)`, `ModuleList(layers)`, `Sequential(OrderedDict(...))`."""
    found: list[Value] = []
    for value in given.positional:
        if type(value) is Sequence or type(value) is Mapping:
            items = list(value.items.values()) if type(value) is Mapping else items_of(m, value)
            found += items if items is not None else rounds(m, value)
        else:
            found.append(value)
    if given.rest is None:
        return found
    if found or type(given.rest) is Choice:
        return [m.thing("layers")]  # others between these, of several kinds: nobody knows which comes last
    return [given.rest]


def call(m: Machine, receiver: Sequence | Mapping, name: str, given: Arguments, node: ast.Call) -> Value:
    if isinstance(receiver, Sequence):
        keeping.kept_in_list(m, name, given, node)
        if name == "append" and given.positional:
            histories.collected(m, receiver, given.positional[0], node)
            workers.kept(m, given.positional[0], node)
            repeats.appended(m, given.positional[0], node)
        if name in ("append", "extend"):
            finished.appended(m, receiver, given, node)
        if name in ("append", "insert") and isinstance(node.func, ast.Attribute):
            given.positional[-1:] = [
                kept_parts.put(m, node.func.value, one, node) for one in given.positional[-1:]
            ]
        return _of_list(m, receiver, name, given)
    return _of_dict(m, receiver, name, given, node)


def _of_list(m: Machine, receiver: Sequence, name: str, given: Arguments) -> Value:
    values = given.positional
    if name == "append" and values:
        _add(receiver, values[0])
        return NONE
    if name == "insert" and len(values) > 1:
        first = type(values[0]) is Constant and values[0].value == 0
        _add(receiver, values[1], 0 if first else None)
        return NONE
    if name == "extend" and values:
        items = items_of(m, values[0])
        for item in items if items is not None else rounds(m, values[0]):
            _add(receiver, item)
        return NONE
    if name in ("pop", "popleft"):
        return _pop(receiver, values)
    if name == "copy":
        return Sequence(list(receiver.items), receiver.rest, receiver.kind)
    if name == "clear":
        emptied(receiver)
        return NONE
    if name == "reverse" and receiver.rest is None:
        receiver.items.reverse()
        return NONE
    return NOTHING_KNOWN


def emptied(owner: Sequence) -> None:
    """`del owner[:]` and the like: what is left is not followed."""
    owner.items.clear()
    owner.rest = None


def _add(receiver: Sequence, value: Value, place: int | None = None) -> None:
    """Items past a limit become one that stands for all."""
    if len(receiver.items) < MOST_ITEMS and receiver.rest is None:
        receiver.items.insert(len(receiver.items) if place is None else place, value)
    elif isinstance(value, Layer | Instance):  # which comes last is not known when they are of several kinds
        receiver.rest = join_all([*receiver.items, *([receiver.rest] if receiver.rest else []), value])
    else:
        receiver.rest = value


def _pop(receiver: Sequence, values: list[Value]) -> Value:
    place = values[0].value if values and type(values[0]) is Constant else -1
    if isinstance(place, int) and receiver.items and -len(receiver.items) <= place < len(receiver.items):
        return receiver.items.pop(place) if receiver.rest is None else receiver.items[place]
    return receiver.rest or NOTHING_KNOWN


def _of_dict(m: Machine, receiver: Mapping, name: str, given: Arguments, node: ast.Call) -> Value:
    values = given.positional
    held = list(receiver.items.values())
    rest = [receiver.rest] if receiver.rest is not None else []
    if name in ("get", "pop", "setdefault"):
        return _get(receiver, values)
    if name == "values":
        return Sequence(held, receiver.rest)
    if name == "items":
        pairs: list[Value] = [
            Sequence([Constant(key), value], None, "tuple") for key, value in receiver.items.items()
        ]
        other = Sequence([NOTHING_KNOWN, rest[0]], None, "tuple") if rest else None
        return Sequence(pairs, other)
    if name == "keys":
        return Sequence([Constant(key) for key in receiver.items], NOTHING_KNOWN if rest else None)
    if name == "copy":
        return Mapping(dict(receiver.items), receiver.rest)
    if name == "update":
        _update(receiver, given)
        return NONE
    if name == "clear":
        receiver.items.clear()
        return NONE
    return unknown(m, given, name) if name not in _QUIET else join_all([*held, *rest])


_QUIET = frozenset({"popitem"})


def _get(receiver: Mapping, values: list[Value]) -> Value:
    key = values[0].value if values and type(values[0]) is Constant else None
    if isinstance(key, str | int) and key in receiver.items:
        return receiver.items[key]
    if receiver.rest is not None:
        return receiver.rest
    return values[1] if len(values) > 1 else NOTHING_KNOWN


def _update(receiver: Mapping, given: Arguments) -> None:
    receiver.items.update(given.keywords)
    for value in given.positional:
        if type(value) is Mapping:
            receiver.items.update(value.items)
            if value.rest is not None:
                receiver.rest = join(receiver.rest, value.rest) if receiver.rest else value.rest
