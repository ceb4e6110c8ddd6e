"""Where the tensors of a finding lie: read when something is found, and for the first writes of a line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from tensafe.facts import Memory, Reached
from tensafe.memory import Extent
from tensafe.memory.from_torch import unwatched
from tensafe.runtime import modes
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.storages.ledger import Ledger, Write, ledger_of
from tensafe.runtime.watcher import Watcher

MOST_TENSORS = 8
MOST_WRITES = 4
BASIC = (int, slice, type(None), type(...))


class Drawn(NamedTuple):
    """A tensor, or an array over the same memory, with its part in what is found."""

    role: str
    tensor: Any
    label: str = ""


def memory_of(*parts: Drawn, also: Iterable[Reached] = ()) -> tuple[Memory, ...]:
    """The storages of these tensors, each with those that lie in it; nothing where one cannot be asked.

    `also` lies in the first storage. No element is read and nothing of the tensors is kept.
    """
    storages: dict[int, tuple[torch.UntypedStorage, list[Reached]]] = {}
    with contextlib.suppress(NotImplementedError, RuntimeError):
        for role, tensor, label in parts:
            reached = reached_by(tensor, role, label)
            if reached is not None:
                storage = tensor.untyped_storage()
                storages.setdefault(id(storage), (storage, []))[1].append(reached)
    held = list(storages.values())
    if held:
        held[0][1].extend(also)
    return tuple(
        Memory(storage.nbytes(), tuple(reached[:MOST_TENSORS]), str(storage.device))
        for storage, reached in held
    )


def reached_by(tensor: Any, role: str, label: str = "") -> Reached | None:
    """The elements of a plain strided tensor; None for everything else."""
    if type(tensor) not in PLAIN or tensor.layout is not torch.strided or tensor.is_nested or modes.asked():
        return None
    size = tensor.element_size()
    strides = tuple(stride * size for stride in tensor.stride())
    offset = int(tensor.storage_offset()) * size
    return Reached(role, offset, tuple(tensor.shape), strides, size, _dtype(tensor), label)


def reached_in(extent: Extent, role: str, label: str = "") -> Reached:
    """The elements of an extent that was taken before."""
    return Reached(
        role, extent.offset, tuple(extent.shape), tuple(extent.strides), extent.itemsize, "", label
    )


def written_by(write: Write | None, ledger: Ledger | None) -> list[Reached]:
    """What a write reached, if it was among the first of its line."""
    if write is None or ledger is None:
        return []
    return [reached for order, reached in ledger.reached if order == write.order]


class WrittenExtents(Watcher):
    """Keeps on the ledger what the first writes of each line reached; the tensors may be gone when asked."""

    def first_writes(self, op: str, target: torch.Tensor, arguments: tuple[Any, ...]) -> None:
        if type(target) not in PLAIN or target.layout is not torch.strided:
            return
        ledger = ledger_of(target)
        raw = ledger.raw
        if raw is None or raw[4] != id(target):
            return
        reached = reached_by(written_part(op, target, arguments), f"written by `{op}`")
        if reached is not None:
            ledger.reached = (*ledger.reached[1 - MOST_WRITES :], (raw[3], reached))


def written_part(op: str, target: torch.Tensor, arguments: tuple[Any, ...]) -> torch.Tensor | None:
    """The part of the target that is written; None when its index is not of slices and numbers."""
    if not op.endswith("__setitem__"):
        return target
    index = arguments[0]
    parts = index if type(index) is tuple else (index,)
    if any(type(part) not in BASIC for part in parts):
        return None
    with torch.no_grad(), torch._C.DisableTorchFunction(), unwatched():
        part: torch.Tensor = torch._C.TensorBase.__getitem__(target, index)
    return part


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
