"""An object as a container that is still in parts: head, and the memory behind each block."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Protocol

from tensafe.copies.pickling import raw
from tensafe.copies.pickling.container import ALIGNMENT, header_of, written
from tensafe.copies.pickling.copying import LARGE, Copies
from tensafe.copies.pickling.layout import LEAST_APART, Gathered, Layout, Run

_MOST_WRITTEN = 1 << 20
"""Bytes gathered at once on the way into a file."""


class Sink(Protocol):
    """A file opened for writing bytes."""

    def write(self, data: memoryview, /) -> object: ...


class Packed:
    """A planned container. Its memory is read when it is written, not before."""

    def __init__(
        self, layout: Layout, foreign: Sequence[pickle.PickleBuffer], stream: bytes, apart: bool
    ) -> None:
        self._layout = layout
        self.stream = stream
        self.is_plain = not layout.values and not foreign  # the stream alone is a pickle for any reader
        self.apart: list[pickle.PickleBuffer] = [run.buffer() for run in layout.apart]
        places = [self._place_foreign(buffer, apart) for buffer in foreign]
        table = pickle.dumps((layout.blocks, layout.values, places), 5)
        if apart:
            self._hand_over_gathered()
        tail = 0 if apart else layout.gathered_nbytes
        self._header = header_of(table, stream, tail, len(self.apart) if apart else None)
        self._head = b"".join([written(self._header), table, stream])
        self.nbytes = self._header.nbytes

    def to_bytes(self) -> bytes:
        """The container as one object; each byte is copied once."""
        whole, address = raw.fresh_bytes(self.nbytes)
        self.copy_to(address)
        return whole

    def copy_to(self, address: int) -> None:
        """Write the container at an address where `nbytes` zeroed bytes are."""
        raw.move(address, self._head, len(self._head))
        if self._header.apart is None:
            _gather(self._layout.gathered, address + self._header.start)

    def write_to(self, file: Sink) -> None:
        """Write the container to a file; memory that lies in one run is not copied before."""
        file.write(memoryview(self._head.ljust(self._header.start, b"\0")))
        if self._header.apart is None:
            for chunk in self._chunks():
                file.write(chunk)

    def _chunks(self) -> Iterator[memoryview]:
        """The buffers in order: large runs as they lie, what lies between them gathered."""
        pending: list[Gathered] = []
        begin = 0
        for one in self._layout.gathered:
            offset, nbytes, address, owner, scattered = one
            if scattered is None and nbytes >= _MOST_WRITTEN:
                yield _joined(pending, begin, offset)
                yield Run(address, nbytes, owner).view()
                pending, begin = [], offset + nbytes
                continue
            pending.append(one)
            if offset + nbytes - begin >= _MOST_WRITTEN:
                yield _joined(pending, begin, offset + nbytes)
                pending, begin = [], offset + nbytes
        yield _joined(pending, begin, self._layout.gathered_nbytes)

    def _place_foreign(self, buffer: pickle.PickleBuffer, apart: bool) -> tuple[int, int, int, bool]:
        view = buffer.raw()
        if apart and view.nbytes >= LEAST_APART:
            self.apart.append(buffer)
            return len(self.apart), 0, view.nbytes, view.readonly
        address = raw.buffer_address(view)
        return 0, self._layout.gather(view.nbytes, ALIGNMENT, address, view, None), view.nbytes, view.readonly

    def _hand_over_gathered(self) -> None:
        """Everything small as one more buffer, the first."""
        gathered = bytearray(self._layout.gathered_nbytes)
        _gather(self._layout.gathered, raw.buffer_address(memoryview(gathered)))
        self.apart.insert(0, pickle.PickleBuffer(gathered))


def _joined(gathered: list[Gathered], begin: int, end: int) -> memoryview:
    part = memoryview(bytearray(end - begin))
    _gather(gathered, raw.buffer_address(part) - begin)
    return part


def _gather(gathered: list[Gathered], address: int) -> None:
    move, copies = raw.move, Copies()
    for offset, nbytes, start, _, scattered in gathered:
        if scattered is not None:
            scattered.copy_to(address + offset)
        elif nbytes < LARGE:
            move(address + offset, start, nbytes)
        else:
            copies.add(address + offset, start, nbytes)
    copies.finish()
