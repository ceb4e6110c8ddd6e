"""`tensafe.loads` and `Unpickler`."""

from __future__ import annotations

import contextlib
import io
import pickle
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Protocol

import torch

from tensafe.copies.pickling import symbols
from tensafe.copies.pickling.building import Builder, check
from tensafe.copies.pickling.container import (
    HEADER_NBYTES,
    Header,
    Table,
    check_whole,
    read,
)
from tensafe.copies.pickling.errors import UnpicklingError
from tensafe.copies.pickling.inputs import Input
from tensafe.memory.from_torch import unwatched


class Readable(Protocol):
    """A file opened for reading bytes."""

    def readinto(self, buffer: bytearray | memoryview, /) -> int | None: ...


class Unpickler:
    """Reads the containers of a file one after the other; the counterpart of `Pickler`.

    `find_class` and `persistent_load` may be given by a subclass, as for `pickle.Unpickler`.
    """

    def __init__(
        self, file: Readable, *, buffers: Iterable[Any] | None = None, writable: bool = True
    ) -> None:
        """Like `loads`, which says what the arguments mean and what it dares."""
        if buffers is not None and not isinstance(buffers, Iterable):
            raise UnpicklingError(f"buffers= is a list of buffers, not a {type(buffers).__name__}")
        self._file = file
        self._buffers = iter(buffers or ())
        self._writable = writable

    def load(self) -> Any:
        """The next object; its tensors lie in the memory that the file was read into.

        Raises `UnpicklingError` where the file is truncated or foreign, `EOFError` at its end.
        """
        first = bytearray(HEADER_NBYTES)
        got = _read_into(self._file, memoryview(first))
        if not got:
            raise EOFError("no container follows: the file ends here")
        header = read(memoryview(first)[:got])
        whole = _room_for(header)
        whole[:HEADER_NBYTES] = first
        got = HEADER_NBYTES + _read_into(self._file, memoryview(whole)[HEADER_NBYTES:])
        check_whole(header, memoryview(whole)[:got])
        return self._open(whole, header)

    def find_class(self, module: str, name: str) -> Any:
        """The class or function of this name, imported: override it to allow few."""
        return pickle.Unpickler.find_class(_PLAIN, module, name)

    def persistent_load(self, persistent: Any) -> Any:
        """The object of a persistent id; none are written unless a pickler's `persistent_id` is."""
        raise UnpicklingError(f"persistent id {persistent!r} is not known: override persistent_load")

    def _open(self, data: Any, header: Header) -> Any:
        whole = Input(data)
        table = _table(whole.view[HEADER_NBYTES : header.stream_start], self.find_class)
        inputs = _inputs(whole, header, self._buffers)
        check(table, inputs)
        with torch._C.DisableTorchFunction(), unwatched():
            values = Builder(table, inputs, self._writable).build()
        stream = whole.view[header.stream_start : header.stream_start + header.stream_nbytes]
        foreign = [_foreign(inputs, place, self._writable) for place in table.foreign]
        with _sparse_list_as_it_was():
            return _Stream(stream, foreign, values, self).load()


class _Stream(pickle.Unpickler):
    """The pickle inside a container, which names values by their numbers."""

    def __init__(self, stream: memoryview, foreign: list[Any], values: list[Any], outer: Unpickler) -> None:
        super().__init__(io.BytesIO(stream), buffers=foreign)
        self._values = values
        self._outer = outer

    def find_class(self, module: str, name: str) -> Any:
        if module == symbols.__name__:
            return self._values.__getitem__ if name == "value" else getattr(symbols, name)
        return self._outer.find_class(module, name)

    def persistent_load(self, persistent: Any) -> Any:
        return self._outer.persistent_load(persistent)


class _TableReader(pickle.Unpickler):
    """The table holds types of elements, and names nothing else."""

    def __init__(self, data: memoryview, find: Any) -> None:
        super().__init__(io.BytesIO(data))
        self._find = find

    def find_class(self, module: str, name: str) -> Any:
        return self._find(module, name)


_PLAIN = pickle.Unpickler(io.BytesIO())


def loads(data: Any, *, buffers: Iterable[Any] | None = None, writable: bool = True) -> Any:
    """The object of `tensafe.dumps`, its tensors and arrays in the very memory given, where that may be.

    `data` is anything with a buffer: `bytes`, `bytearray`, `memoryview`, `mmap`, shared memory. Where it can
    be written, tensors look into it without a copy, and what they write is written there (so two loads of
    one `bytearray` share memory). Where it cannot, `writable=True` copies each tensor once, to memory of its
    own, as pickle does; `writable=False` copies nothing and refuses writes: tensors are frozen
    (`tensafe.freeze`), arrays not writeable. `buffers` are those that `dumps` put into its list, or copies
    of them, in order.

    As dangerous as `pickle.loads`: the bytes may name any function of any module, which is then called. Load
    only what you trust; override `Unpickler.find_class` to allow few names. Raises `UnpicklingError` for
    bytes that are foreign, truncated, or of another version.
    """
    try:
        view = memoryview(data).cast("B")
    except TypeError:
        raise UnpicklingError(
            f"a {type(data).__name__} has no contiguous bytes: give bytes, bytearray, memoryview or mmap"
        ) from None
    header = read(view[:HEADER_NBYTES])
    check_whole(header, view)
    unpickler = Unpickler(io.BytesIO(), buffers=buffers, writable=writable)
    return unpickler._open(view, header)


@contextlib.contextmanager
def _sparse_list_as_it_was() -> Iterator[None]:
    """Torch keeps every sparse tensor that it rebuilds until the next `torch.load`, which checks them all.

    Ours would be kept alive by that list, and frozen ones would fail the check of a load that is not theirs.
    """
    kept: list[Any] = getattr(torch._utils, "_sparse_tensors_to_validate", [])
    before = len(kept)
    try:
        yield
    finally:
        del kept[before:]


def _room_for(header: Header) -> bytearray:
    try:
        return bytearray(header.nbytes)
    except (MemoryError, OverflowError):
        raise UnpicklingError(
            f"{header.nbytes} bytes do not fit in memory: map the file (mmap) and give it to tensafe.loads"
        ) from None


def _read_into(file: Readable, target: memoryview) -> int:
    """Bytes read until the target is full or the file ends."""
    got = 0
    while got < target.nbytes:
        more = file.readinto(target[got:])
        if not more:
            break
        got += more
    return got


def _table(data: memoryview, find: Any) -> Table:
    return Table(*_TableReader(data, find).load())


def _inputs(whole: Input, header: Header, buffers: Iterator[Any]) -> list[Input]:
    """The buffers of one container; those that follow belong to the next."""
    if header.apart is None:
        return [whole.from_offset(header.start)]
    given = list(islice(buffers, header.apart))
    if len(given) != header.apart:
        raise UnpicklingError(
            f"{header.apart} buffers were handed over apart, {len(given)} are given: "
            "pass the list that dumps filled as buffers="
        )
    return [_input(buffer, number) for number, buffer in enumerate(given)]


def _input(buffer: Any, number: int) -> Input:
    try:
        return Input(buffer)
    except TypeError:
        raise UnpicklingError(
            f"buffers[{number}] is a {type(buffer).__name__} without contiguous bytes: pass those of dumps"
        ) from None


def _foreign(inputs: list[Input], place: tuple[int, int, int, bool], writable: bool) -> Any:
    """A buffer of another object, as it was: writable or not."""
    buffer, offset, nbytes, readonly = place
    part = inputs[buffer].view[offset : offset + nbytes]
    if readonly or not writable:
        return part.toreadonly()
    return bytearray(part) if part.readonly else part
