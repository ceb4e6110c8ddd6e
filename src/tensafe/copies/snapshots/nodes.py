"""What a snapshot knows of an object: a tree of nodes, in which a tensor is its number."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, TypeAlias

import torch

from tensafe.copies.leaves import spelled

ATOMS = frozenset(
    [type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout, torch.Size]
)
"""Types of plain values, kept as they are: nobody can change them."""
ATOM_FAMILIES = (int, float, complex, str, bytes, enum.Enum, torch.memory_format, torch.Size)

Node: TypeAlias = "int | Plain | Opaque | Array | Stream | Held"
"""An integer is the number of a tensor in the snapshot."""

MAPPINGS = ("dict", "group", "parameters", "buffers", "modules", "state")
NAMED = ("parameters", "buffers", "modules", "attributes")
OURS = ("module", "optimizer", "parameters", "buffers", "modules", "attributes", "group", "state", "wrapper")
"""Kinds whose own make-up is not a value: it is compared, and never made anew."""


class Plain:
    """A plain value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Opaque:
    """An object that is kept by reference, and not looked into."""

    __slots__ = ("ref",)

    def __init__(self, ref: Any) -> None:
        self.ref = ref


class Array:
    """A NumPy array: its copy, and the array itself while it is looked at."""

    __slots__ = ("live", "saved")

    def __init__(self, live: Any, saved: Any = None) -> None:
        self.live = live
        self.saved = saved


class Stream:
    """A source of random numbers; `kind` is the key of its reader and writer."""

    __slots__ = ("kind", "live", "state")

    def __init__(self, kind: str, live: Any, state: Any) -> None:
        self.kind = kind
        self.live = live
        self.state = state


class Held:
    """A container: a dictionary, list, tuple, set, module, optimizer, or an object's attributes.

    `seen` are the values as they were met, to learn cheaply whether they still stand there. `detail` is the
    class of an object, the field names of a tuple, the count of parameters of a group, and the like.
    """

    __slots__ = ("children", "detail", "keys", "kind", "live", "seen", "size")

    def __init__(self, kind: str, live: Any, keys: list[Any], detail: Any = None) -> None:
        self.kind = kind
        self.live = live
        self.keys = keys
        self.children: list[Node] = []
        self.seen: list[Any] = []
        self.detail = detail
        self.size = 0  # of all attributes of an object, those that are not looked at too

    def only_tensors(self) -> bool:
        return set(map(type, self.children)) <= {int}


def step(node: Held, key: Any) -> str:
    """How a child is written after its holder's path."""
    if node.kind in ("module", "foreign"):
        return ""
    if node.kind in NAMED:
        return f"[{key}]" if key.isdigit() else f".{key}"
    if node.kind in ("optimizer", "wrapper"):
        return f".{key}"
    if node.kind == "set":
        return "{...}"
    if node.kind == "tuple" and node.detail:
        return f".{node.detail[key]}"
    return spelled(key)


def walk(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    """A node and all below it, each once, with their paths."""
    met: set[int] = set()
    waiting = [(path, node)]
    while waiting:
        path, node = waiting.pop()
        yield path, node
        if isinstance(node, Held) and id(node) not in met:
            met.add(id(node))
            pairs = list(zip(node.keys, node.children, strict=True))
            waiting += [(path + step(node, key), child) for key, child in reversed(pairs)]


def tensor_paths(nodes: list[Node], names: list[str], count: int) -> list[str]:
    """The first path that leads to each tensor."""
    paths = [""] * count
    for name, root in zip(names, nodes, strict=True):
        for path, node in walk(root, name):
            if type(node) is int and not paths[node]:
                paths[node] = path
    return paths
