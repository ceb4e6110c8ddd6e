"""Bytes that are read by place and counted: a file, a part of one, an inflated part, bytes in memory."""

from __future__ import annotations

import os
import stat
import zlib
from pathlib import Path
from typing import BinaryIO, Protocol

from tensafe.checkpoints.error import CheckpointError

KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
INFLATED_AT_ONCE = 1 << 20


class Content(Protocol):
    """A row of bytes; `what` names it in messages."""

    @property
    def what(self) -> str: ...

    @property
    def nbytes(self) -> int: ...

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Exactly these bytes; raises `CheckpointError` where there are fewer."""
        ...


def check_within(content: Content, offset: int, nbytes: int) -> None:
    """Raise `CheckpointError` when the content ends before these bytes do."""
    if offset < 0 or nbytes < 0 or offset + nbytes > content.nbytes:
        raise CheckpointError(
            f"{content.what}: {nbytes:,} bytes were expected at byte {offset:,}, but it ends at "
            f"{content.nbytes:,}: truncated or damaged"
        )


class Source:
    """A regular file; opened when first read, counts what it reads, opens nothing that is not a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes_read = 0
        self._file: BinaryIO | None = None
        self.nbytes = _size_of(path)

    @property
    def what(self) -> str:
        return str(self.path)

    def read_at(self, offset: int, nbytes: int) -> bytes:
        check_within(self, offset, nbytes)
        try:
            if self._file is None:
                self._file = open(self.path, "rb", buffering=0)  # noqa: SIM115 - open from read to read
            self._file.seek(offset)
            data = _read_fully(self._file, nbytes)
        except (OSError, ValueError) as error:
            raise CheckpointError(f"cannot read {self.path}: {_reason(error)}") from None
        self.bytes_read += len(data)
        if len(data) < nbytes:
            raise CheckpointError(f"{self.path}: it became shorter while it was read")
        return data

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class Section:
    """A part of another content."""

    def __init__(self, whole: Content, start: int, nbytes: int, what: str = "") -> None:
        check_within(whole, start, nbytes)
        self.whole, self.start, self.nbytes = whole, start, nbytes
        self.what = what or whole.what

    def read_at(self, offset: int, nbytes: int) -> bytes:
        check_within(self, offset, nbytes)
        return self.whole.read_at(self.start + offset, nbytes)


class InMemory:
    """Bytes that are already here."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self.what, self.nbytes = data, what, len(data)

    def read_at(self, offset: int, nbytes: int) -> bytes:
        check_within(self, offset, nbytes)
        return self._data[offset : offset + nbytes]


class Inflated:
    """What a deflated part holds; read forward in little memory, from the start again to go back."""

    def __init__(self, packed: Content, nbytes: int, what: str) -> None:
        self._packed, self.nbytes, self.what = packed, nbytes, what
        self._rewind()

    def read_at(self, offset: int, nbytes: int) -> bytes:
        check_within(self, offset, nbytes)
        if offset < self._place:
            self._rewind()
        while self._place < offset:
            self._take(min(offset - self._place, INFLATED_AT_ONCE))
        return self._take(nbytes)

    def _rewind(self) -> None:
        self._inflator = zlib.decompressobj(-zlib.MAX_WBITS)
        self._place = self._fed = 0
        self._ready = b""

    def _take(self, nbytes: int) -> bytes:
        pieces = []
        while nbytes:
            if not self._ready:
                self._ready = self._inflate()
            piece, self._ready = self._ready[:nbytes], self._ready[nbytes:]
            pieces.append(piece)
            nbytes -= len(piece)
            self._place += len(piece)
        return b"".join(pieces)

    def _inflate(self) -> bytes:
        try:
            while not self._inflator.eof:
                tail = self._inflator.unconsumed_tail
                if not tail:
                    tail = self._packed.read_at(self._fed, min(1 << 16, self._packed.nbytes - self._fed))
                    self._fed += len(tail)
                data = self._inflator.decompress(tail, INFLATED_AT_ONCE)
                if data:
                    return data
                if not tail:
                    break
        except zlib.error as error:
            raise CheckpointError(f"{self.what}: its compressed data is damaged: {error}") from None
        raise CheckpointError(
            f"{self.what}: it inflates to fewer than the {self.nbytes:,} bytes it announces"
        )


def _size_of(path: Path) -> int:
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"cannot read {path}: {_reason(error)}") from None
    if not stat.S_ISREG(status.st_mode):
        kind = KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
        raise CheckpointError(f"cannot read {path}: it is {kind}")
    return status.st_size


def _read_fully(file: BinaryIO, nbytes: int) -> bytes:
    data = file.read(nbytes)
    while len(data) < nbytes:  # one read gives at most 2 GiB on Linux
        more = file.read(nbytes - len(data))
        if not more:
            break
        data += more
    return data


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
