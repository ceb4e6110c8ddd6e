"""What the operating system says of an address: mapped from which file, writable or not. Linux only."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple


class Mapping(NamedTuple):
    """One line of `/proc/self/maps`."""

    start: int
    stop: int
    permissions: str  # "rw-p": readable, writable, not executable, private ("s": shared)
    path: str  # "" for memory without a file

    @property
    def is_writable(self) -> bool:
        return "w" in self.permissions

    @property
    def is_shared(self) -> bool:
        """Whether what one process writes is seen by others, and by the file."""
        return self.permissions.endswith("s")

    @property
    def is_file(self) -> bool:
        """A file of the disk; shared memory under `/dev/shm` and nameless mappings are none."""
        return self.path.startswith("/") and not self.path.startswith(("/dev/", "/memfd:", "/SYSV"))

    @property
    def note(self) -> str:
        """In a few words; "" for ordinary memory."""
        if not self.is_file:
            return "" if self.is_writable else "memory-mapped, read-only"
        how = (
            "read-only"
            if not self.is_writable
            else "writes reach the file"
            if self.is_shared
            else "private copy"
        )
        return f"memory-mapped from {self.path}, {how}"


class Mappings:
    """A snapshot of all mappings of this process, empty where the system does not tell."""

    def __init__(self) -> None:
        try:
            with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
                self._mappings = [parsed(line) for line in file]
        except (OSError, ValueError):
            self._mappings = []
        self._starts = [mapping.start for mapping in self._mappings]

    def at(self, address: int | None) -> Mapping | None:
        """The mapping that holds this address."""
        if address is None:
            return None
        place = bisect_right(self._starts, address) - 1
        if place < 0 or address >= self._mappings[place].stop:
            return None
        return self._mappings[place]


def parsed(line: str) -> Mapping:
    """One line of the file; its path may hold spaces."""
    fields = line.rstrip("\n").split(maxsplit=5)
    start, _, stop = fields[0].partition("-")
    return Mapping(int(start, 16), int(stop, 16), fields[1], fields[5] if len(fields) > 5 else "")
