"""Writes zip files as torch does: uncompressed, data aligned, the same fields in the same order."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import BinaryIO

from tensafe.checkpoints.formats.zip_directory import END, ENTRY, LARGEST32, LOCAL, LOCATOR

DATA_FOLLOWS_AND_UTF8 = 0x0808  # sizes stand behind the data; the name is UTF-8
DESCRIPTOR, DESCRIPTOR64 = struct.Struct("<4s3I"), struct.Struct("<4sI2Q")
DESCRIPTOR_SIGNATURE = b"PK\x07\x08"
END64 = struct.Struct("<4sQ2H2I4Q")
MADE_BY, NEEDED = 0x031E, 0x2D
LARGEST16 = 0xFFFF


class ZipWriter:
    """Records one after the other, then `close()`. The offsets are those that torch works out for itself."""

    def __init__(self, file: BinaryIO, alignment: int = 64) -> None:
        self._file, self._alignment = file, alignment
        self._place = 0
        self._entries: list[bytes] = []
        self._count = 0

    def write(self, name: str, nbytes: int, chunks: Iterable[bytes]) -> None:
        """One record of exactly `nbytes`."""
        raw = name.encode("utf-8", "surrogateescape")
        begin = self._place
        wide = _wide(nbytes, begin)
        extra = wide + self._padding(begin + LOCAL.size + len(raw) + len(wide))
        header = (b"PK\x03\x04", 0, DATA_FOLLOWS_AND_UTF8, 0, 0, 0, 0, 0, 0, len(raw), len(extra))
        self._put(LOCAL.pack(*header) + raw + extra)
        checksum, written = 0, 0
        for chunk in chunks:
            checksum = zlib.crc32(chunk, checksum)
            written += len(chunk)
            self._put(chunk)
        if written != nbytes:
            raise ValueError(f"{name}: {written:,} bytes came, {nbytes:,} were announced")
        if nbytes:
            form = DESCRIPTOR64 if wide else DESCRIPTOR
            self._put(form.pack(DESCRIPTOR_SIGNATURE, checksum, nbytes, nbytes))
        self._enter(raw, nbytes, checksum, begin)

    def close(self) -> None:
        """Write the directory."""
        start = self._place
        for entry in self._entries:
            self._put(entry)
        size, end64 = self._place - start, self._place
        count = self._count
        self._put(
            END64.pack(b"PK\x06\x06", END64.size - 12, MADE_BY, NEEDED, 0, 0, count, count, size, start)
        )
        self._put(LOCATOR.pack(b"PK\x06\x07", 0, end64, 1))
        few = min(count, LARGEST16)
        self._put(END.pack(b"PK\x05\x06", 0, 0, few, few, min(size, LARGEST32), min(start, LARGEST32), 0))

    def _padding(self, start: int) -> bytes:
        """An extra field that brings the data to a multiple of the alignment."""
        length = -(start + 4) % self._alignment
        return b"FB" + length.to_bytes(2, "little") + b"Z" * length

    def _enter(self, raw: bytes, nbytes: int, checksum: int, begin: int) -> None:
        wide = _wide(nbytes, begin)
        size, place = min(nbytes, LARGEST32), min(begin, LARGEST32)
        lengths = (len(raw), len(wide), 0)
        fields = (
            b"PK\x01\x02",
            0,
            0,
            DATA_FOLLOWS_AND_UTF8,
            0,
            0,
            0,
            checksum,
            size,
            size,
            *lengths,
            0,
            0,
            0,
            place,
        )
        self._entries.append(ENTRY.pack(*fields) + raw + wide)
        self._count += 1

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._place += len(data)


def _wide(nbytes: int, begin: int) -> bytes:
    """The 64-bit sizes and place of a record, where 32 bits do not hold them."""
    sizes = [nbytes, nbytes] if nbytes >= LARGEST32 else []
    places = [begin] if begin >= LARGEST32 else []
    numbers = sizes + places
    return struct.pack(f"<2H{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""
