"""Independent values made of a snapshot's nodes and copies."""

from __future__ import annotations

import copy
from typing import Any

import torch

from tensafe.copies.snapshots.copies import Copies
from tensafe.copies.snapshots.nodes import Array, Held, Node, Opaque, Plain
from tensafe.errors import TensafeError

UNKNOWN = object()
"""What a file could not hold, and so is left as it is."""


class Values:
    """New objects for nodes; a tensor or container that stands in two places is one object in both."""

    def __init__(self, copies: Copies, devices: list[torch.device]) -> None:
        self._copies = copies
        self._devices = devices
        self._tensors: dict[int, torch.Tensor] = {}
        self._made: dict[int, Any] = {}

    def of(self, node: Node, path: str) -> Any:
        """A new object like the one that was taken."""
        if type(node) is int:
            return self.tensor(node)
        if isinstance(node, Plain):
            return node.value
        if isinstance(node, Array):
            return self._made.setdefault(id(node), node.saved.copy())
        if isinstance(node, Opaque) and node.ref is not UNKNOWN:
            return node.ref
        if isinstance(node, Held) and node.kind in _MAKERS:
            return self._container(node, path)
        raise TensafeError(
            f"{path} is gone, and a snapshot has only what was in it: put such an object there"
        )

    def tensor(self, number: int) -> torch.Tensor:
        """A new tensor, where the one that was taken lay."""
        known = self._tensors.get(number)
        if known is None:
            device = self._devices[number]
            source = self._copies.of(number)
            usable = device.type == source.device.type or (
                device.type == "cuda" and torch.cuda.is_available()
            )
            known = source.to(device, copy=True) if usable else source.clone()
            self._tensors[number] = known
        return known

    def _container(self, node: Held, path: str) -> Any:
        if id(node) in self._made:
            return self._made[id(node)]
        made = _empty(node)
        self._made[id(node)] = made
        values = [
            self.of(child, f"{path}[{key!r}]") for key, child in zip(node.keys, node.children, strict=True)
        ]
        made = _MAKERS[node.kind](made, node, values)
        self._made[id(node)] = made
        return made


def _empty(node: Held) -> Any:
    """An empty container of the same class; of the plain one where it came from a file."""
    if node.live is None or type(node.live) in (dict, list, set, tuple):
        return {"dict": dict, "group": dict, "list": list, "set": set, "tuple": tuple}[node.kind]()
    if node.kind == "tuple":
        return node.live
    made = copy.copy(node.live)
    made.clear()
    return made


def _dictionary(made: Any, node: Held, values: list[Any]) -> Any:
    for key, value in zip(node.keys, values, strict=True):
        made[key] = value
    return made


def _sequence(made: Any, node: Held, values: list[Any]) -> Any:
    made.extend(values)
    return made


def _tuple(made: Any, node: Held, values: list[Any]) -> Any:
    return retupled(made, values)


def _set(made: Any, node: Held, values: list[Any]) -> Any:
    made.update(values)
    return made


def retupled(like: tuple[Any, ...], values: list[Any]) -> tuple[Any, ...]:
    """A tuple of the class of another."""
    kind: Any = type(like)
    return kind._make(values) if hasattr(kind, "_make") else kind(values)  # type: ignore[no-any-return]


_MAKERS = {"dict": _dictionary, "group": _dictionary, "list": _sequence, "tuple": _tuple, "set": _set}
