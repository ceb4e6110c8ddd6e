"""The layout of the bytes that `tensafe.dumps` writes: header, table, stream, buffers.

All integers are little-endian. Offsets count from the first byte of the container.

| bytes | what |
|---|---|
| 0-7 | magic, `93 54 45 4e 53 41 46 45` (`\\x93TENSAFE`) |
| 8-9 | version of the layout, 1 |
| 10-11 | 1 when the buffers follow, 0 when they are handed over apart (`buffers=`) |
| 12-15 | how many buffers are apart |
| 16-23 | nbytes of the table: a pickle of `Table`, which says what each value is and in which bytes it lies |
| 24-31 | nbytes of the stream: the pickle of the object, with a number for each tensor and array |
| 32-39 | where the buffers start, a multiple of 64 |
| 40-47 | nbytes of the whole container |
| 48-51 | CRC-32 of table and stream; the buffers are not summed |
| 52-55 | CRC-32 of bytes 0-51 |
| 56-63 | zero |
| 64-... | table, stream, zeros up to the buffers, the buffers |
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

from tensafe.copies.pickling.errors import UnpicklingError

MAGIC = b"\x93TENSAFE"
VERSION = 1
ALIGNMENT = 64
"""Buffers of at least this many bytes start at a multiple of it; smaller ones at one of their itemsize."""
_FIELDS = struct.Struct("<8sHHIQQQQI")
_SUM = struct.Struct("<I")
HEADER_NBYTES = 64


class Header(NamedTuple):
    """The first 64 bytes."""

    table_nbytes: int
    stream_nbytes: int
    start: int  # of the buffers
    nbytes: int  # of the whole container
    apart: int | None  # buffers handed over beside the container; None when they are in it
    checksum: int  # of table and stream

    @property
    def stream_start(self) -> int:
        return HEADER_NBYTES + self.table_nbytes


class Block(NamedTuple):
    """Memory that one or more values look into. Stored as a plain tuple."""

    buffer: int  # 0 is what is gathered: the tail of the container, or the first of those apart
    offset: int  # in the buffer
    nbytes: int
    device: str  # that it goes back to


class Value(NamedTuple):
    """One tensor, array or storage: how it looks into its block. Stored as a plain tuple."""

    kind: int
    block: int
    dtype: Any  # of torch or of NumPy
    offset: int  # bytes from the start of the block
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # elements for tensors, bytes for arrays; None for row-major order
    flags: int


class Table(NamedTuple):
    """What the numbers in the stream stand for: a list of `Block`, one of `Value`, one of other buffers.

    `foreign` are the buffers of other objects, in order: buffer, offset, nbytes, whether it is read-only.
    """

    blocks: list[tuple[int, int, int, str]]
    values: list[tuple[Any, ...]]
    foreign: list[tuple[int, int, int, bool]]


TENSOR, PARAMETER, ARRAY, STORAGE = range(4)
REQUIRES_GRAD, CONJUGATED, NEGATED, UNWRITEABLE = 1, 2, 4, 8
CPU = "cpu"


def padded(nbytes: int, alignment: int = ALIGNMENT) -> int:
    """The next multiple of the alignment."""
    return nbytes + -nbytes % alignment


def alignment_of(itemsize: int) -> int:
    """The largest power of two in an itemsize, at most 16: what items of structured arrays may ask for."""
    return min(itemsize & -itemsize, 16) or 1


def header_of(table: bytes, stream: bytes, tail_nbytes: int, apart: int | None) -> Header:
    """The header of a container with these in it; `tail_nbytes` are those of its buffers."""
    start = padded(HEADER_NBYTES + len(table) + len(stream))
    checksum = zlib.crc32(stream, zlib.crc32(table))
    return Header(len(table), len(stream), start, start + tail_nbytes, apart, checksum)


def written(header: Header) -> bytes:
    """The header's 64 bytes."""
    inside = header.apart is None
    fields = _FIELDS.pack(
        MAGIC, VERSION, int(inside), header.apart or 0, header.table_nbytes, header.stream_nbytes,
        header.start, header.nbytes, header.checksum,
    )  # fmt: skip
    return (fields + _SUM.pack(zlib.crc32(fields))).ljust(HEADER_NBYTES, b"\0")


def read(first: bytes | memoryview) -> Header:
    """The header from the first 64 bytes or more. Raises `UnpicklingError` for anything else."""
    start = bytes(first[:HEADER_NBYTES])
    _check_magic(start)
    fields = start[: _FIELDS.size]
    _, version, inside, apart, table, stream, begin, nbytes, checksum = _FIELDS.unpack(fields)
    if version != VERSION:
        raise UnpicklingError(
            f"these bytes have layout version {version}, this tensafe reads version {VERSION}: "
            "load them with the tensafe that wrote them"
        )
    if _SUM.unpack_from(start, _FIELDS.size) != (zlib.crc32(fields),):
        raise UnpicklingError("the header has changed since it was written: write the bytes again")
    return Header(table, stream, begin, nbytes, None if inside else apart, checksum)


def _check_magic(first: bytes) -> None:
    if first[: len(MAGIC)] == MAGIC[: len(first)] and len(first) < HEADER_NBYTES:
        raise UnpicklingError(
            f"truncated: {len(first)} bytes, not even the header's {HEADER_NBYTES}; write them again"
        )
    if first.startswith(MAGIC):
        return
    hint = ""
    if first[:1] == b"\x80":
        hint = "; this looks like a pickle: use pickle.loads"
    elif first[:2] == b"PK":
        hint = "; this looks like a torch.save or .npz file: use torch.load or numpy.load"
    raise UnpicklingError(f"not written by tensafe.dumps (no magic bytes){hint}")


def check_whole(header: Header, container: memoryview) -> None:
    """Raise `UnpicklingError` when bytes are missing, or those of table and stream are not as written."""
    if container.nbytes < header.nbytes:
        raise UnpicklingError(
            f"truncated: {container.nbytes} of {header.nbytes} bytes are there; write them or send them again"
        )
    if zlib.crc32(container[HEADER_NBYTES : header.stream_start + header.stream_nbytes]) != header.checksum:
        raise UnpicklingError("the bytes have changed since they were written: write them or send them again")
