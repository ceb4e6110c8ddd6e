"""Reads a rendered page back: which characters of which line are underlined, and with what words."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_LOCATION = re.compile(
    r" *(-->|:::) (?P<path>.+?):(?P<line>\d+)(?::(?P<column>\d+))?(?: in (?P<function>.+))?$"
)
_SOURCE = re.compile(r" *(?P<number>\d+) \|(?: (?P<text>.*))?$")
_UNDERLINE = re.compile(r" *\| (?P<lead> *)(?P<mark>\^+|-+)(?: (?P<label>.*))?$")


@dataclass(frozen=True)
class Underlined:
    """One underline: the line it stands under and what it covers."""

    path: str
    line: int
    covered: str
    label: str
    primary: bool
    starts_at_cell: int


def underlines(page: str) -> list[Underlined]:
    """All underlines of a page, with the very characters above them."""
    found = []
    path, number, text = "", 0, ""
    for line in page.splitlines():
        if location := _LOCATION.match(line):
            path = location["path"]
        elif source := _SOURCE.match(line):
            number, text = int(source["number"]), source["text"] or ""
        elif mark := _UNDERLINE.match(line):
            start = len(mark["lead"])
            covered = _cells(text, start, start + len(mark["mark"]))
            found.append(Underlined(path, number, covered, mark["label"] or "", "^" in mark["mark"], start))
    return found


def source_lines(page: str) -> list[int]:
    """The numbers of the source lines shown, in the order of the page."""
    return [int(found["number"]) for found in map(_SOURCE.match, page.splitlines()) if found]


def cell_width(text: str) -> int:
    """An oracle of its own for the width of printable text."""
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _cells(text: str, start: int, end: int) -> str:
    """The characters whose cells lie between two columns; a character cut in half is an error."""
    covered, column = "", 0
    for character in text:
        width = _width(character)
        if start <= column < end or (width == 0 and start < column <= end):
            assert column + width <= end, f"{character!r} is cut in half"
            covered += character
        else:
            assert not column < start < column + width, f"{character!r} is cut in half"
        column += width
    return covered
