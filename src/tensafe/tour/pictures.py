"""The memory and the graph of a few named tensors, as rows that every report can draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tensafe.memory.extent import Extent
from tensafe.memory.from_numpy import is_array
from tensafe.memory.part import Part


@dataclass(frozen=True)
class MemoryRow:
    """One tensor in its storage; storages are lettered in the order in which they are met."""

    name: str
    storage: str
    extent: Extent
    storage_nbytes: int


@dataclass(frozen=True)
class GraphRow:
    """Where one tensor stands in the graph."""

    name: str
    maker: str  # the node that made it, "" where there is none
    requires_grad: bool


def memory_of(shown: Mapping[str, Any]) -> Iterator[MemoryRow]:
    """A row for each tensor or array."""
    letters: dict[tuple[str, int], str] = {}
    for name, value in shown.items():
        for part in _parts(value):
            letter = letters.setdefault(part.storage_key, chr(ord("A") + len(letters)))
            yield MemoryRow(name, letter, part.extent, part.storage_nbytes)


def _parts(value: Any) -> list[Part]:
    if is_array(value):
        from tensafe.memory.from_numpy import parts_of as of_array

        return of_array(value)
    from tensafe.memory.from_torch import parts_of as of_tensor

    return of_tensor(value)


def graph_of(shown: Mapping[str, Any]) -> Iterator[GraphRow]:
    """A row for each tensor, where one of them is in a graph."""
    tensors = {name: value for name, value in shown.items() if not is_array(value)}
    if any(value.requires_grad for value in tensors.values()):
        for name, value in tensors.items():
            maker = value.grad_fn.name() if value.grad_fn is not None else ""
            yield GraphRow(name, maker, value.requires_grad)
