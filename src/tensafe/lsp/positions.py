"""Lines and columns of a Site, from 1 in characters, and those of the protocol, from 0 in code units."""

from __future__ import annotations

import bisect

from lsprotocol import types

from tensafe.facts import Site
from tensafe.findings.source import split_lines

_BYTES_A_UNIT = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


class Positions:
    """One text, and the units in which the client counts its columns."""

    def __init__(self, text: str, encoding: str) -> None:
        self._lines = split_lines(text)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._encoding, self._bytes = _BYTES_A_UNIT.get(encoding, _BYTES_A_UNIT["utf-16"])

    def range_of(self, site: Site) -> types.Range:
        """The span of a site; its whole line where it has no columns."""
        last = max(site.line, site.end_line)
        end = site.end_column or len(self._line(last).rstrip("\r\n")) + 1
        return types.Range(self._position(site.line, site.column), self._position(last, end))

    def range_between(self, start: int, end: int) -> types.Range:
        """The span between two offsets in characters."""
        return types.Range(self._at(start), self._at(end))

    def whole(self) -> types.Range:
        """The span of the whole text."""
        return self.range_between(0, self._starts[-1])

    def place(self, position: types.Position) -> tuple[int, int]:
        """Line and column, from 1 in characters."""
        line = self._line(position.line + 1)
        before = line.encode(self._encoding, "surrogatepass")[: position.character * self._bytes]
        return position.line + 1, len(before.decode(self._encoding, "ignore")) + 1

    def _at(self, offset: int) -> types.Position:
        line = bisect.bisect_right(self._starts, offset)
        if line > len(self._lines):  # the end of the text
            last = self._lines[-1] if self._lines else ""
            if not last.endswith(("\n", "\r")):
                return self._position(max(1, len(self._lines)), len(last) + 1)
        return self._position(line, offset - self._starts[line - 1] + 1)

    def _position(self, line: int, column: int) -> types.Position:
        before = self._line(line)[: column - 1]
        units = len(before.encode(self._encoding, "surrogatepass")) // self._bytes
        return types.Position(line - 1, units)

    def _line(self, number: int) -> str:
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""


def overlap(one: types.Range, other: types.Range) -> bool:
    """Whether two spans share a place; one that is empty lies in what it touches."""
    return _key(one.start) <= _key(other.end) and _key(other.start) <= _key(one.end)


def _key(position: types.Position) -> tuple[int, int]:
    return position.line, position.character
