"""A pickle's bytes from front to back: read in small pieces, large ones skipped without being read."""

from __future__ import annotations

from tensafe.checkpoints.content import Content
from tensafe.checkpoints.error import CheckpointError

AHEAD = 1 << 16  # bytes fetched at once
LONGEST_LINE = 1 << 24


class Stream:
    """Reads forward from `start`; `position` counts from the start of the content."""

    def __init__(self, content: Content, start: int = 0) -> None:
        self.content = content
        self._buffer = b""
        self._base = start  # place of the buffer's first byte
        self._next = 0

    @property
    def position(self) -> int:
        return self._base + self._next

    @property
    def left(self) -> int:
        return self.content.nbytes - self.position

    def read(self, nbytes: int) -> bytes:
        """Exactly so many bytes; raises `CheckpointError` at the end of the content."""
        stop = self._next + nbytes
        if stop > len(self._buffer):
            self._fetch(nbytes)
            stop = self._next + nbytes
        data = self._buffer[self._next : stop]
        self._next = stop
        return data

    def byte(self) -> int:
        """The next byte as a number."""
        if self._next >= len(self._buffer):
            self._fetch(1)
        self._next += 1
        return self._buffer[self._next - 1]

    def skip(self, nbytes: int) -> None:
        """Go on behind so many bytes, unread."""
        if nbytes > self.left:
            raise self.fault(f"{nbytes:,} bytes were expected here, {self.left:,} are left")
        self._next += nbytes
        if self._next > len(self._buffer):
            self._base, self._buffer, self._next = self.position, b"", 0

    def line(self) -> bytes:
        """The bytes up to the next newline, which is passed over."""
        pieces: list[bytes] = []
        length = 0
        while True:
            end = self._buffer.find(b"\n", self._next)
            if end >= 0:
                pieces.append(self._buffer[self._next : end])
                self._next = end + 1
                return b"".join(pieces)
            pieces.append(self._buffer[self._next :])
            length += len(pieces[-1])
            self._next = len(self._buffer)
            if not self.left or length > LONGEST_LINE:
                raise self.fault("a line without an end")
            self._fetch(1)

    def fault(self, what: str, place: int | None = None) -> CheckpointError:
        """The error that names file, place and what was expected."""
        where = self.position if place is None else place
        return CheckpointError(f"{self.content.what}: byte {where:,}: {what}")

    def _fetch(self, nbytes: int) -> None:
        if nbytes > self.left:
            raise self.fault(
                "the pickle ends in the middle of an instruction: truncated or damaged"
                if self.left or self.position
                else "there is no pickle: the file is empty"
            )
        place = self.position
        self._buffer = self.content.read_at(place, min(max(nbytes, AHEAD), self.content.nbytes - place))
        self._base, self._next = place, 0
