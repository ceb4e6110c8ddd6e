"""The plan of a container's buffers: which bytes are stored, where, and how each value looks into them."""

from __future__ import annotations

import pickle
import sys
from typing import Any, NamedTuple

import torch

from tensafe.copies.pickling import raw
from tensafe.copies.pickling.container import (
    ALIGNMENT,
    ARRAY,
    CONJUGATED,
    CPU,
    NEGATED,
    REQUIRES_GRAD,
    UNWRITEABLE,
    alignment_of,
)
from tensafe.copies.pickling.memory import Memory
from tensafe.copies.pickling.recorder import Recorder
from tensafe.memory.extent import Extent
from tensafe.memory.from_numpy import is_array
from tensafe.memory.packing import Rows, pack

SMALL = 4096
"""Blocks of fewer bytes are aligned to their items, not to `ALIGNMENT`, so that loads makes many at once."""
LEAST_APART = 16384
"""Blocks of fewer bytes are copied into the first buffer rather than handed over apart."""


class Run(NamedTuple):
    """Bytes that lie one after the other in memory."""

    address: int
    nbytes: int
    owner: Any  # kept alive while somebody reads at the address

    def view(self) -> memoryview:
        """The bytes as they lie in memory, without a copy."""
        return raw.exported(self.address, self.nbytes, self.owner)

    def buffer(self) -> pickle.PickleBuffer:
        """The same for others to keep; read-only when it is an array's that is."""
        held = raw.holder(self.address, self.nbytes, self.owner)
        if is_array(self.owner) and not self.owner.flags.writeable:
            held = sys.modules["numpy"].frombuffer(held, "u1")
            held.setflags(write=False)
        return pickle.PickleBuffer(held)


class Scattered(NamedTuple):
    """Bytes in rows, or those of a storage that has no address to read."""

    address: int  # that rows count from
    nbytes: int
    rows: tuple[Rows, ...]
    flat: torch.Tensor | None

    def copy_to(self, address: int) -> None:
        """Gather the bytes at an address."""
        for row in self.rows:
            shape, strides = (row.repeats, row.length), (row.stride, 1)
            flat, start = self.flat, row.start
            if flat is None:
                reach = row.stride * (row.repeats - 1) + row.length
                flat, start = raw.as_bytes(self.address + row.start, reach), 0
            target = raw.as_bytes(address + row.place, row.nbytes).view(shape)
            target.copy_(flat.as_strided(shape, strides, start))


Gathered = tuple[int, int, int, Any, Scattered | None]
"""What lies in buffer 0: offset, nbytes, the address of a run and its owner, or what is scattered."""


class Layout:
    """What goes into the table, and the bytes behind it.

    `gathered` goes into buffer 0, in ascending offsets; `apart` are the buffers 1, 2, ...
    """

    def __init__(self, recorder: Recorder, apart: bool) -> None:
        self.blocks: list[tuple[int, int, int, str]] = []  # as `container.Block`
        self.values: list[Any] = [None] * len(recorder.kinds)  # as `container.Value`
        self.gathered: list[Gathered] = []
        self.apart: list[Run] = []
        self.gathered_nbytes = 0
        self._least_apart = LEAST_APART if apart else None
        self._kinds = recorder.kinds

    def gather(self, nbytes: int, alignment: int, address: int, owner: Any, source: Scattered | None) -> int:
        """The offset in buffer 0 at which the bytes will lie."""
        end = self.gathered_nbytes
        offset = end + -end % (alignment if nbytes < SMALL else ALIGNMENT)
        self.gathered.append((offset, nbytes, address, owner, source))
        self.gathered_nbytes = offset + nbytes
        return offset

    def place_alone(self, memory: Memory, number: int) -> None:
        """One value, all of its bytes in one run that no other reaches."""
        value, kind = memory.values[number], self._kinds[number]
        start = memory.starts[number]
        self._place_run(start, memory.stops[number] - start, value, alignment_of(value.itemsize))
        make = _array if kind == ARRAY else _tensor
        self.values[number] = make(kind, value, len(self.blocks) - 1, None)

    def place_group(self, memory: Memory, numbers: list[int]) -> None:
        """Values of one memory: the union of their bytes, packed."""
        extents = [memory.extent(number) for number in numbers]
        low = min(extent.start for extent in extents)
        packing = pack([_upright(extent.moved(-low)) for extent in extents])
        rows, alignment = packing.rows, max(alignment_of(extent.itemsize) for extent in extents)
        odd = memory.odd.get(numbers[0])
        values = [memory.odd[n].value if n in memory.odd else memory.values[n] for n in numbers]
        if odd is not None and odd.flat is not None:
            rows = tuple([row._replace(start=row.start + low) for row in rows])
            self._place_scattered(Scattered(0, packing.nbytes, rows, odd.flat), alignment)
        elif len(rows) == 1 and rows[0].repeats == 1:
            owners = [value for value in values if isinstance(value, torch.Tensor)] or values
            self._place_run(low + rows[0].start, packing.nbytes, owners[0], alignment)
        else:
            self._place_scattered(Scattered(low, packing.nbytes, rows, None), alignment)
        for number, value, old, new in zip(numbers, values, extents, packing.extents, strict=True):
            make = _array if self._kinds[number] == ARRAY else _tensor
            self.values[number] = make(self._kinds[number], value, len(self.blocks) - 1, _turned(old, new))

    def _place_run(self, address: int, nbytes: int, owner: Any, alignment: int) -> None:
        if self._least_apart is not None and nbytes >= self._least_apart:
            self.apart.append(Run(address, nbytes, owner))
            self.blocks.append((len(self.apart), 0, nbytes, CPU))
        else:
            offset = self.gather(nbytes, alignment, address, owner, None)
            self.blocks.append((0, offset, nbytes, CPU))

    def _place_scattered(self, source: Scattered, alignment: int) -> None:
        device = CPU if source.flat is None else str(source.flat.device)
        offset = self.gather(source.nbytes, alignment, 0, None, source)
        self.blocks.append((0, offset, source.nbytes, device))


def plan(recorder: Recorder, apart: bool) -> Layout:
    """Store the union of the bytes that the values reach, once each, as `tensafe.compact` would.

    With `apart`, large blocks that lie in one run become buffers of their own, without a copy.
    """
    layout = Layout(recorder, apart)
    memory = Memory(recorder)
    groups = memory.groups()
    grouped = {number for numbers in groups.values() for number in numbers}
    for number in range(len(recorder.kinds)):
        if number in groups:
            layout.place_group(memory, groups[number])
        elif number in memory.odd and number not in grouped:
            layout.place_group(memory, [number])
        elif number not in grouped:
            layout.place_alone(memory, number)
    return layout


def _upright(extent: Extent) -> Extent:
    """The same bytes with ascending strides only."""
    return extent._replace(offset=extent.start, strides=tuple(map(abs, extent.strides)))


def _turned(old: Extent, new: Extent) -> Extent:
    """The packed extent with the directions that the old one had."""
    if all(stride >= 0 for stride in old.strides):
        return new
    axes = list(zip(old.shape, old.strides, new.strides, strict=True))
    back = sum(after * (size - 1) for size, before, after in axes if before < 0)
    strides = tuple([-after if before < 0 else after for _, before, after in axes])
    return new._replace(offset=new.offset + back, strides=strides)


def _array(kind: int, array: Any, block: int, extent: Extent | None) -> tuple[Any, ...]:
    flags = 0 if array.flags.writeable else UNWRITEABLE
    strides = None if extent is None or extent.is_contiguous else extent.strides
    return (kind, block, array.dtype, extent.offset if extent else 0, array.shape, strides, flags)


def _tensor(kind: int, tensor: torch.Tensor, block: int, extent: Extent | None) -> tuple[Any, ...]:
    flags = REQUIRES_GRAD if tensor.requires_grad else 0
    if tensor.is_neg() or tensor.is_conj():
        flags |= (CONJUGATED if tensor.is_conj() else 0) | (NEGATED if tensor.is_neg() else 0)
    shape = tuple(tensor.shape)
    if extent is not None:
        size = tensor.itemsize
        strides = tuple([stride // size for stride in extent.strides])
        return (kind, block, tensor.dtype, extent.offset, shape, strides, flags)
    # dimensions of 1 or 0 may have any stride, which row-major order would not give back
    own = tensor.stride() if 1 in shape or 0 in shape else None
    return (kind, block, tensor.dtype, 0, shape, own, flags)
