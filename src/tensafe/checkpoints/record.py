"""The records of a file, and the storages that they make with the tensors over them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from tensafe.checkpoints.content import Content
from tensafe.checkpoints.pickled.placed import Placed
from tensafe.checkpoints.pickled.walk import Found
from tensafe.memory.covered import MOST_RUNS, Covered, covered, row_count
from tensafe.memory.extent import Extent
from tensafe.memory.map import NamedTensor, Storage

MOST_ROWS = 1_000_000  # of all tensors of a file, to be looked at one by one
FEW_RUNS = 1_000


@dataclass
class Record:
    """Bytes of a file that tensors look into."""

    label: str
    nbytes: int
    content: Content | None  # None: there are no bytes, as on the meta device
    device: str = "cpu"
    dtype: str = "uint8"  # of the storage, for tensors that do not name their own
    itemsize: int = 1
    notes: tuple[str, ...] = ()
    tensors: list[NamedTensor] = field(default_factory=list)


def tensor_over(record: Record, found: Found) -> NamedTensor | str:
    """The tensor with its extent in the record, or what is wrong with it."""
    placed = found.what
    if not isinstance(placed, Placed):
        extent = Extent(0, (record.nbytes,), (1,), 1)
        return NamedTensor(
            tuple(found.names), (record.nbytes,), (1,), "uint8", extent, "storage", found.notes
        )
    dtype, itemsize = placed.dtype or record.dtype, placed.itemsize or _itemsize(placed, record)
    extent = Extent(
        placed.offset * itemsize,
        placed.shape,
        tuple(stride * itemsize for stride in placed.strides),
        itemsize,
    )
    if extent.numel and extent.stop > record.nbytes:
        return (
            f"{found.names[0]}: shape {placed.shape} with stride {placed.strides} at {placed.offset} "
            f"reaches to byte {extent.stop:,} of {record.label}, which has {record.nbytes:,}"
        )
    return NamedTensor(
        tuple(found.names), placed.shape, placed.strides, dtype, extent, found.kind, found.notes
    )


def _itemsize(placed: Placed, record: Record) -> int:
    from tensafe.checkpoints.pickled.dtypes import ITEMSIZES

    return ITEMSIZES.get(placed.dtype, 1) if placed.dtype else record.itemsize


@dataclass(frozen=True)
class FileStorage(Storage):
    """A storage whose bytes are counted row by row only as far as all storages of the file together allow."""

    most_runs: int = MOST_RUNS

    @cached_property
    def covered(self) -> Covered:
        return covered([tensor.extent for tensor in self.tensors], self.most_runs)


def runs_for(tensors: Iterable[NamedTensor]) -> int:
    """How many runs to list for each group of these tensors, so that all of them together stay few."""
    rows = sum(row_count(tensor.extent) for tensor in tensors if not tensor.extent.is_dense)
    return MOST_RUNS if rows <= MOST_ROWS else FEW_RUNS


def storages_of(records: Collection[Record]) -> tuple[Storage, ...]:
    """The records as storages, the largest first; equal tensors under several names are one tensor."""
    merged = {record.label: _merged(record.tensors) for record in records}
    most_runs = runs_for(tensor for tensors in merged.values() for tensor in tensors)
    made = [
        FileStorage(r.label, r.nbytes, r.device, merged[r.label], r.notes, most_runs=most_runs)
        for r in records
    ]
    return tuple(sorted(made, key=lambda storage: -storage.nbytes))


def _merged(tensors: list[NamedTensor]) -> tuple[NamedTensor, ...]:
    groups: dict[tuple[object, ...], list[NamedTensor]] = {}
    for tensor in tensors:
        key = (tensor.shape, tensor.strides, tensor.dtype, tensor.extent, frozenset(tensor.notes) & APART)
        groups.setdefault(key, []).append(tensor)
    merged = [_tied(group) for group in groups.values()]
    return tuple(sorted(merged, key=lambda tensor: (tensor.extent.start, -tensor.nbytes)))


APART = {"conj bit", "neg bit"}
"""Notes that make two tensors over the same bytes different ones."""


def _tied(group: list[NamedTensor]) -> NamedTensor:
    if len(group) == 1:
        return group[0]
    first = min(group, key=lambda tensor: KINDS.get(tensor.kind, 9))
    names = tuple(dict.fromkeys(name for tensor in group for name in tensor.names))
    notes = tuple(dict.fromkeys(note for tensor in group for note in tensor.notes))
    return NamedTensor(names, first.shape, first.strides, first.dtype, first.extent, first.kind, notes)


KINDS = {"parameter": 0, "buffer": 1, "optimizer state": 2, "tensor": 3, "storage": 4}
