"""Whether everything a snapshot met still stands where it stood, told without a second walk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from operator import attrgetter, eq, is_
from typing import Any

import torch

from tensafe.copies.snapshots.looking import Look, attributes
from tensafe.copies.snapshots.nodes import ATOMS, Array, Held, Plain

_shape, _dtype = attrgetter("shape"), attrgetter("dtype")
_MAPPINGS = ("dict", "parameters", "buffers", "modules", "state")
_flat = chain.from_iterable
_values: Callable[[Any], Iterable[Any]] = dict.values


def still_there(look: Look, copy_of: Callable[[int], torch.Tensor]) -> bool:
    """Whether the tensors and containers are the same; plain values that changed are taken over at once."""
    for node in look.restless:
        if isinstance(node, Held) or (isinstance(node, Array) and node.live.shape != node.saved.shape):
            return False
    tensors = look.tensors
    if not isinstance(look.standing, Standing):
        look.standing = Standing(look.held)
        copies = list(map(copy_of, range(len(tensors))))
        look.shapes, look.dtypes = list(map(_shape, copies)), list(map(_dtype, copies))
    if not all(map(eq, map(_shape, tensors), look.shapes)):
        return False
    if not all(map(is_, map(_dtype, tensors), look.dtypes)):
        return False
    if look.standing.unchanged():
        return True
    look.standing = None
    return all(map(_stays, look.held))


class Standing:
    """All dictionaries, and the attributes of all modules, in a few flat lists: compared without a loop."""

    def __init__(self, held: list[Held]) -> None:
        mappings = [node for node in held if node.kind in _MAPPINGS]
        self._mappings = [node.live for node in mappings]
        self._lengths = [len(node.seen) for node in mappings]
        self._keys = list(
            _flat(node.detail["keys"] if node.kind == "state" else node.keys for node in mappings)
        )
        self._values = list(_flat(node.seen for node in mappings))
        modules = [node for node in held if node.kind == "attributes" and node.detail == "module"]
        self._owns = [vars(node.live) for node in modules]
        self._sizes = [node.size for node in modules]
        self._names = [node.keys for node in modules]
        self._attributes = list(_flat(node.seen for node in modules))
        covered = {id(node) for node in (*mappings, *modules)}
        self._others = [node for node in held if id(node) not in covered]

    def unchanged(self) -> bool:
        """Whether the very same values stand under the same keys everywhere."""
        if list(map(len, self._mappings)) != self._lengths or list(map(len, self._owns)) != self._sizes:
            return False
        owned = _flat(map(own.get, names) for own, names in zip(self._owns, self._names, strict=True))
        return (
            all(map(is_, _flat(map(_values, self._mappings)), self._values))
            and all(map(is_, _flat(self._mappings), self._keys))
            and all(map(is_, owned, self._attributes))
            and all(map(_stays, self._others))
        )


def _stays(node: Held) -> bool:
    check = _CHECKS.get(node.kind)
    if check is None:
        return True
    values = check(node)
    if values is None or len(values) != len(node.seen):
        return False
    return all(map(is_, values, node.seen)) or _only_atoms(node, values)


def _only_atoms(node: Held, values: list[Any]) -> bool:
    """Take over plain values that changed; False where something else did."""
    for place, (value, before) in enumerate(zip(values, node.seen, strict=True)):
        if value is before:
            continue
        child = node.children[place]
        if type(value) not in ATOMS or not isinstance(child, Plain):
            return False
        child.value = value
        node.seen[place] = value
    return True


def _dictionary(node: Held) -> list[Any] | None:
    live = node.live
    keys = node.detail["keys"] if node.kind == "state" else node.keys
    return list(live.values()) if len(live) == len(keys) and all(map(is_, live, keys)) else None


def _group(node: Held) -> list[Any] | None:
    live = node.live
    if len(live["params"]) != node.detail or len(live) != len(node.keys) + 1:
        return None
    return [live.get(key, _GONE) for key in node.keys]


def _attributes(node: Held) -> list[Any] | None:
    own = vars(node.live) if isinstance(node.live, torch.nn.Module) else attributes(node.live)
    return None if len(own) != node.size else [own.get(key, _GONE) for key in node.keys]


def _set(node: Held) -> list[Any] | None:
    return node.seen if node.live == set(node.keys) else None


_GONE = object()
_CHECKS: dict[str, Callable[[Held], list[Any] | None]] = {
    **dict.fromkeys(_MAPPINGS, _dictionary),
    "group": _group,
    "attributes": _attributes,
    "list": lambda node: list(node.live),
    "set": _set,
    "wrapper": lambda node: [getattr(node.live, key) for key in node.keys],
}
