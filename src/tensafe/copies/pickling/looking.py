"""Tensors and arrays over the bytes of one block."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from tensafe.copies.huge_pages import ask_for_huge_pages
from tensafe.copies.pickling import raw
from tensafe.copies.pickling.container import CPU, STORAGE, UNWRITEABLE, Block, Value
from tensafe.copies.pickling.copying import LARGE, Copies
from tensafe.copies.pickling.errors import UnpicklingError
from tensafe.copies.pickling.inputs import Input

_frombuffer = torch.frombuffer


def _cannot_mark(tensor: torch.Tensor) -> None:
    raise UnpicklingError(f"torch {torch.__version__} has no read-only storages: give writable=True")


mark: Callable[[torch.Tensor], None] = getattr(torch._C, "_set_throw_on_mutable_data_ptr", _cannot_mark)


class Looking:
    """The bytes of a block, where they were handed in or copied from there, and what looks into them."""

    def __init__(self, block: Block, source: Input, copies: Copies | None, writable: bool) -> None:
        self._block = block
        self._source = source
        self._copies = copies  # None when the bytes are used where they are
        self._writable = writable
        self._bytes: torch.Tensor | None = None
        self._address = 0

    def alone(self, value: Value) -> torch.Tensor:
        """The only tensor of a block, in row-major order."""
        _, offset, nbytes, device = self._block
        if not nbytes or value.kind == STORAGE or device != CPU:
            return self.tensor(value)
        if self._copies is not None:
            tensor = torch.empty(value.shape, dtype=value.dtype)
            self._fill(self._copies, tensor.data_ptr())
        else:
            count = nbytes // value.dtype.itemsize
            tensor = _frombuffer(self._source.writable_view, dtype=value.dtype, count=count, offset=offset)
            if len(value.shape) != 1:
                tensor.resize_(value.shape)
        if not self._writable:
            mark(tensor)
        return tensor

    def tensor(self, value: Value) -> torch.Tensor:
        """One of several values of a block, or one with strides of its own."""
        whole = self._whole()
        size = value.dtype.itemsize
        if value.kind == STORAGE and value.offset == 0 and value.shape[0] == self._block.nbytes:
            return whole
        strides = row_major(value.shape) if value.strides is None else value.strides
        if value.offset % size == 0:
            empty = torch.empty(0, dtype=value.dtype, device=whole.device)
            return empty.set_(whole.untyped_storage(), value.offset // size, value.shape, strides)
        nbytes = self._block.nbytes - value.offset
        part = raw.exported(self._address + value.offset, nbytes - nbytes % size, whole)
        tensor = _frombuffer(part, dtype=value.dtype).as_strided_(value.shape, strides)
        if not self._writable:
            mark(tensor)
        return tensor

    def array(self, value: Value) -> Any:
        """One of several values of a block, or one with strides of its own."""
        if self._copies is None and self._block.nbytes:
            return self._array(value, self._source.view, self._block.offset + value.offset)
        whole = self._whole()
        return self._array(value, raw.exported(self._address, self._block.nbytes, whole), value.offset)

    def _array(self, value: Value, buffer: memoryview, offset: int) -> Any:
        buffer = buffer if self._writable else buffer.toreadonly()
        made = sys.modules["numpy"].ndarray(value.shape, value.dtype, buffer, offset, value.strides)
        if value.flags & UNWRITEABLE:
            made.flags.writeable = False
        return made

    def _whole(self) -> torch.Tensor:
        """All bytes of the block, as the tensor that owns them."""
        if self._bytes is None:
            self._bytes = self._made_whole()
            if not self._writable and self._block.nbytes:
                mark(self._bytes)
        return self._bytes

    def _made_whole(self) -> torch.Tensor:
        _, offset, nbytes, device = self._block
        if not nbytes:
            return torch.empty(0, dtype=torch.uint8, device=device)
        if self._copies is None:
            self._address = self._source.address + offset
            return _frombuffer(self._source.writable_view, dtype=torch.uint8, count=nbytes, offset=offset)
        whole = torch.empty(nbytes, dtype=torch.uint8)
        self._address = whole.data_ptr()
        self._fill(self._copies, self._address)
        if device == CPU:
            return whole
        self._copies.finish()
        return whole.to(device)

    def _fill(self, copies: Copies, address: int) -> None:
        nbytes = self._block.nbytes
        if nbytes >= LARGE:
            ask_for_huge_pages(address, nbytes)
        copies.add(address, self._source.address + self._block.offset, nbytes)


def array_over(source: Input, offset: int, value: Any, writable: bool) -> Any:
    """The only array of a block, in row-major order: in place where that may be, else a copy."""
    _, _, dtype, _, shape, _, flags = value
    view = source.view if writable else source.view.toreadonly()
    made = sys.modules["numpy"].ndarray(shape, dtype, view, offset)
    if writable and source.readonly:
        made = made.copy()
    if flags & UNWRITEABLE:
        made.flags.writeable = False
    return made


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous tensor, in elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
