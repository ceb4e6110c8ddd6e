"""The central directory of a zip file, read with limits and without the records."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tensafe.checkpoints.content import Content, Inflated, Section
from tensafe.checkpoints.error import CheckpointError

MOST_RECORDS = 250_000
MOST_NBYTES = 48 << 20  # of the directory
END, END_SIGNATURE = struct.Struct("<4s4H2IH"), b"PK\x05\x06"
END64, END64_SIGNATURE = struct.Struct("<4sQ2H2I4Q"), b"PK\x06\x06"
LOCATOR, LOCATOR_SIGNATURE = struct.Struct("<4sIQI"), b"PK\x06\x07"
ENTRY, ENTRY_SIGNATURE = struct.Struct("<4s6H3I5H2I"), b"PK\x01\x02"
LOCAL, LOCAL_SIGNATURE = struct.Struct("<4s5H3I2H"), b"PK\x03\x04"
LONGEST_COMMENT = 1 << 16
LARGEST32 = 0xFFFFFFFF
STORED, DEFLATED = 0, 8
MOST = (LARGEST32, LARGEST32, 0xFFFF)
"""What stands in the small fields for start, size and number when they are in the wide ones."""


@dataclass(frozen=True, slots=True)
class ZipRecord:
    """One entry: its name, sizes in bytes, and where its header stands."""

    name: str
    nbytes: int
    packed_nbytes: int
    method: int
    header_offset: int
    checksum: int  # CRC-32
    is_encrypted: bool

    @property
    def is_stored(self) -> bool:
        return self.method == STORED and not self.is_encrypted


class ZipDirectory:
    """The records of a zip file, in the order of the directory."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.start, size, count = _find_directory(content)
        if count > MOST_RECORDS or size > MOST_NBYTES:
            raise CheckpointError(
                f"{content.what}: a zip directory of {count:,} records in {size:,} bytes; "
                f"tensafe reads up to {MOST_RECORDS:,} records"
            )
        raw = content.read_at(self.start, size)
        self.records = {record.name: record for record in _unique(_entries(raw, count, content), content)}
        if sum(record.packed_nbytes for record in self.records.values()) > content.nbytes:
            raise CheckpointError(
                f"{content.what}: its records overlap, or reach beyond the end: damaged or hostile"
            )

    def open(self, name: str) -> Content:
        """What a record holds; raises `CheckpointError` when its place or its compression is impossible."""
        record = self.records[name]
        what = f"{self.content.what}: {name}"
        if record.is_encrypted:
            raise CheckpointError(f"{what}: it is encrypted")
        offset = self.data_offset(record)
        if offset + record.packed_nbytes > self.start:
            raise CheckpointError(f"{what}: its data reaches into the directory of the zip file")
        packed = Section(self.content, offset, record.packed_nbytes, what)
        if record.method == DEFLATED:
            return Inflated(packed, record.nbytes, what)
        if record.method != STORED:
            raise CheckpointError(f"{what}: compressed by method {record.method}, only deflate is known")
        if record.packed_nbytes != record.nbytes:
            raise CheckpointError(
                f"{what}: stored in {record.packed_nbytes:,} bytes, but {record.nbytes:,} long"
            )
        return packed

    def data_offset(self, record: ZipRecord) -> int:
        """Where the data begins, behind the record's own header."""
        raw = self.content.read_at(record.header_offset, LOCAL.size)
        signature, *_, name_length, extra_length = LOCAL.unpack(raw)
        if signature != LOCAL_SIGNATURE:
            raise CheckpointError(
                f"{self.content.what}: byte {record.header_offset:,}: "
                f"the header of {record.name} was expected"
            )
        return int(record.header_offset + LOCAL.size + name_length + extra_length)


def _find_directory(content: Content) -> tuple[int, int, int]:
    """Start, size and number of entries of the central directory."""
    length = min(content.nbytes, END.size)
    tail = content.read_at(content.nbytes - length, length)
    if not tail.startswith(END_SIGNATURE):  # a comment is behind it
        length = min(content.nbytes, END.size + LONGEST_COMMENT)
        tail = content.read_at(content.nbytes - length, length)
    at = tail.rfind(END_SIGNATURE, 0, max(len(tail) - END.size + len(END_SIGNATURE), 0))
    if at < 0:
        raise CheckpointError(
            f"{content.what}: the directory of the zip file is missing: truncated or damaged"
        )
    end = content.nbytes - length + at
    _, _, _, _, count, size, start, _ = END.unpack(tail[at : at + END.size])
    wide = _find_directory64(content, end)
    if wide is not None:
        if any(
            small not in (large, most)
            for small, large, most in zip((start, size, count), wide, MOST, strict=False)
        ):
            raise CheckpointError(f"{content.what}: it has two zip directories: readers would disagree")
        start, size, count, end = wide
    if start + size > end:
        raise CheckpointError(
            f"{content.what}: its zip directory of {size:,} bytes at {start:,} is beyond the end"
        )
    return start, size, count


def _find_directory64(content: Content, end: int) -> tuple[int, int, int, int] | None:
    """Start, size, number of entries and end of a directory with 64-bit fields, None without one."""
    if end < LOCATOR.size:
        return None
    signature, _, place, _ = LOCATOR.unpack(content.read_at(end - LOCATOR.size, LOCATOR.size))
    if signature != LOCATOR_SIGNATURE:
        return None
    fields = END64.unpack(content.read_at(place, END64.size))
    if fields[0] != END64_SIGNATURE:
        raise CheckpointError(f"{content.what}: byte {place:,}: the end of a zip directory was expected")
    return fields[9], fields[8], fields[7], place


def _entries(raw: bytes, count: int, content: Content) -> Iterator[ZipRecord]:
    place = 0
    for _ in range(count):
        if place + ENTRY.size > len(raw):
            raise CheckpointError(f"{content.what}: its zip directory ends before entry {_ + 1} of {count:,}")
        fields = ENTRY.unpack_from(raw, place)
        signature, flags, method, checksum, packed, nbytes = (fields[i] for i in (0, 3, 4, 7, 8, 9))
        name_length, extra_length, comment_length = fields[10:13]
        if signature != ENTRY_SIGNATURE:
            raise CheckpointError(
                f"{content.what}: its zip directory is damaged at entry {_ + 1} of {count:,}"
            )
        begin = place + ENTRY.size
        stop = begin + name_length + extra_length
        if stop > len(raw):
            raise CheckpointError(f"{content.what}: its zip directory ends within entry {_ + 1} of {count:,}")
        name = raw[begin : begin + name_length].decode("utf-8", "backslashreplace")
        sizes = [nbytes, packed, fields[16]]
        _widen(sizes, raw[begin + name_length : stop])
        yield ZipRecord(name, sizes[0], sizes[1], method, sizes[2], checksum, bool(flags & 1))
        place = stop + comment_length


def _widen(sizes: list[int], extra: bytes) -> None:
    """Put in the 64-bit sizes of a record that needs them."""
    place = 0
    while place + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, place)
        place += 4
        if kind == 1:
            wide = [index for index, size in enumerate(sizes) if size == LARGEST32]
            for index, at in zip(wide, range(place, min(place + length, len(extra)) - 7, 8), strict=False):
                sizes[index] = struct.unpack_from("<Q", extra, at)[0]
            return
        place += length


def _unique(records: Iterator[ZipRecord], content: Content) -> Iterator[ZipRecord]:
    names: set[str] = set()
    for record in records:
        if record.name in names:
            raise CheckpointError(
                f"{content.what}: two records are called {record.name}: readers would disagree"
            )
        names.add(record.name)
        yield record
