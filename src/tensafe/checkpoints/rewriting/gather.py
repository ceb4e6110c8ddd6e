"""Copies rows of bytes in order, a bounded part in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tensafe.checkpoints.content import Content
from tensafe.memory.packing import Packing, Rows

READ_AT_ONCE = 4 << 20
FAR = 1 << 14  # bytes from row to row above which each is read by itself
FORMATS: dict[int, Literal["B", "H", "I", "Q"]] = {1: "B", 2: "H", 4: "I", 8: "Q"}


def gathered(content: Content, packing: Packing, nbytes: int) -> Iterator[bytes]:
    """The `nbytes` of the new storage; what no row writes is zero."""
    place = 0
    for rows in packing.rows:
        if rows.place > place:
            yield bytes(rows.place - place)
        yield from _rows(content, rows)
        place = rows.place + rows.nbytes
    if nbytes > place:
        yield bytes(nbytes - place)


def _rows(content: Content, rows: Rows) -> Iterator[bytes]:
    if rows.repeats == 1 or rows.stride == rows.length or rows.stride > FAR:
        length = rows.nbytes if rows.stride == rows.length else rows.length
        repeats = 1 if rows.stride == rows.length else rows.repeats
        for index in range(repeats):
            yield from _run(content, rows.start + index * rows.stride, length)
        return
    at_once = max(1, READ_AT_ONCE // rows.stride)
    for first in range(0, rows.repeats, at_once):
        count = min(at_once, rows.repeats - first)
        span = (count - 1) * rows.stride + rows.length
        yield picked(content.read_at(rows.start + first * rows.stride, span), rows.length, rows.stride, count)


def _run(content: Content, start: int, length: int) -> Iterator[bytes]:
    for place in range(0, length, READ_AT_ONCE):
        yield content.read_at(start + place, min(READ_AT_ONCE, length - place))


def picked(data: bytes, length: int, stride: int, count: int) -> bytes:
    """`count` pieces of `length` bytes, `stride` apart, from the start of the data."""
    if length == stride or count == 1:
        return data[: length * count]
    form = FORMATS.get(length)
    view = memoryview(data)
    if form is not None and not stride % length:
        whole = view[: (count - 1) * stride + length].cast(form)
        return whole[:: stride // length].tobytes()
    return b"".join([view[place : place + length] for place in range(0, count * stride, stride)])
