"""Where the bytes of each recorded value lie, and which values lie in one memory."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, NamedTuple

import torch

from tensafe.copies.pickling import raw
from tensafe.copies.pickling.container import ARRAY, PARAMETER, STORAGE
from tensafe.copies.pickling.recorder import Recorder
from tensafe.copies.plan import reaches_beyond
from tensafe.memory.extent import Extent
from tensafe.memory.from_numpy import parts_of

_is_cow = torch._C._is_cow_tensor  # type: ignore[attr-defined]
_storage_of = torch._C._storage_address  # type: ignore[attr-defined]
_ADDRESSES = ""
"""The space of addresses; other spaces are single storages, whose bytes are counted from their start."""


_LOW = 1 << 32
"""Memory rarely lies below this address; an offset into memory that was freed does."""


class Freed(Exception):
    """A tensor was met whose storage is too small for it, as after `resize_(0)`."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__()
        self.tensor = tensor


class Odd(NamedTuple):
    """What is to be known of a value that is not simply all of its bytes in row-major order, in memory."""

    value: Any  # tensor or array; a storage is seen as a tensor of bytes
    extent: Extent
    space: str = _ADDRESSES
    flat: torch.Tensor | None = None  # the whole storage as bytes, where there is no address to read


class Memory:
    """Where each recorded value lies: `starts[number]` up to `stops[number]`; more in `odd`, for some.

    Columns of integers, as thousands of small objects make the garbage collector work.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.values = recorder.values
        self.starts: list[int] = []
        self.stops: list[int] = []
        self.odd: dict[int, Odd] = {}
        self._clones: dict[int, torch.Tensor] = {}
        self._leaders: dict[int, int] = {}
        self._look(recorder)
        self._join_neighbours()

    def groups(self) -> dict[int, list[int]]:
        """Values that lie in one memory with others, by the first number of each group, all ascending."""
        groups: dict[int, list[int]] = {}
        for number in sorted(self._leaders):
            groups.setdefault(self._leader(number), []).append(number)
        return groups

    def extent(self, number: int) -> Extent:
        """The value's extent in its space."""
        if number in self.odd:
            return self.odd[number].extent
        value, start = self.values[number], self.starts[number]
        if isinstance(value, torch.Tensor):
            size = value.itemsize
            strides = tuple([stride * size for stride in value.stride()])
            return Extent(start, tuple(value.shape), strides, size)
        return Extent(start, value.shape, value.strides, value.itemsize)

    def _look(self, recorder: Recorder) -> None:
        firsts: dict[int, int] = {}
        for number, (kind, value) in enumerate(zip(recorder.kinds, recorder.values, strict=True)):
            if kind == ARRAY:
                self._see_array(number, value)
                continue
            if kind == STORAGE:
                value = torch.empty(0, dtype=torch.uint8, device=value.device).set_(value)
            key = _storage_of(value)
            simple = kind <= PARAMETER and value.is_cpu and not _is_cow(value) and value.is_contiguous()
            start = raw.address_of(value) if simple else None
            if start is None:
                self._see_odd(number, value, key)
            else:
                if start < _LOW:
                    _refuse_freed(value)
                self.starts.append(start)
                self.stops.append(start + value.nbytes)
            first = firsts.setdefault(key, number)
            if first != number and self.starts[number] != self.stops[number]:
                self._join(first, number)

    def _see_odd(self, number: int, tensor: torch.Tensor, key: int) -> None:
        _refuse_freed(tensor)
        size = tensor.itemsize
        extent = Extent(0, tuple(tensor.shape), tensor.stride(), 1).scaled(size)
        is_cpu = tensor.device.type == "cpu"
        address = raw.address_of(tensor) if is_cpu else None
        if not tensor.numel():
            odd = Odd(tensor, extent, f"empty {number}")
        elif address is not None:
            odd = Odd(tensor, extent.moved(address), f"lazy {key}" if _is_cow(tensor) else _ADDRESSES)
        else:
            flat = self._clones.get(key)
            if flat is None:
                flat = raw.flat_bytes(tensor.detach())
                flat = self._clones[key] = flat.clone() if is_cpu else flat
            extent = extent.moved(int(tensor.storage_offset()) * size)
            odd = Odd(tensor, extent, f"storage {key}", flat)
        self._add_odd(number, odd)

    def _see_array(self, number: int, array: Any) -> None:
        if array.flags.c_contiguous:
            start = array.__array_interface__["data"][0] if array.nbytes else 0
            self.starts.append(start)
            self.stops.append(start + array.nbytes)
            return
        (part,) = parts_of(array)
        extent = part.extent.moved(part.address or 0)
        self._add_odd(number, Odd(array, extent, _ADDRESSES if extent.numel else f"empty {number}"))

    def _add_odd(self, number: int, odd: Odd) -> None:
        self.odd[number] = odd
        self.starts.append(odd.extent.start)
        self.stops.append(odd.extent.stop)

    def _join_neighbours(self) -> None:
        """Values that reach into each other's range, whatever their storages: an array and its tensor."""
        end = last = -1
        for start, number in self._spans():
            stop = self.stops[number]
            if start < end and stop != start:
                self._join(last, number)
            if stop > end:
                end, last = stop, number

    def _spans(self) -> Iterator[tuple[int, int]]:
        apart = {number for number, odd in self.odd.items() if odd.space}
        spans = enumerate(self.starts)
        ordered = sorted(spans, key=itemgetter(1))
        return ((start, number) for number, start in ordered if number not in apart)

    def _join(self, one: int, other: int) -> None:
        first, second = sorted((self._leader(one), self._leader(other)))
        self._leaders[first] = self._leaders[second] = first
        self._leaders.setdefault(one, first)
        self._leaders.setdefault(other, first)

    def _leader(self, number: int) -> int:
        while (above := self._leaders.get(number, number)) != number:
            number = above
        return number


def _refuse_freed(tensor: torch.Tensor) -> None:
    if reaches_beyond(tensor):
        raise Freed(tensor)
