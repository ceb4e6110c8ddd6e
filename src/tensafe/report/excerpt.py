"""The lines of one file with every place underlined: a numbered block as rustc prints it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensafe.findings import Site
from tensafe.report.characters import cells, printable, visible
from tensafe.report.style import Line, Style

SHOWN_OF_A_SPAN = 4  # a longer span loses its middle
LEAST_LEAD = 12  # characters kept before the span when a long line is cut
CUT = "…"


@dataclass(frozen=True, slots=True)
class Place:
    """A site with the words that stand under it; the first place of a finding is the primary one."""

    site: Site
    label: str
    primary: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of a place on one line: characters `start` to `end`, counted from 0."""

    line: int
    start: int
    end: int
    label: str
    primary: bool


def excerpt(places: Sequence[Place], lines: Sequence[str], gutter: int, width: int) -> Iterator[Line]:
    """The block without its location line: rulers, source lines, underlines, `...` between far lines."""
    by_line: dict[int, list[Segment]] = {}
    for place in places:
        for segment in segments(place, lines):
            by_line.setdefault(segment.line, []).append(segment)
    yield _ruler(gutter)
    before = None
    for number in sorted(by_line):
        if before is not None and number - before == 2:
            yield from _numbered(number - 1, [], lines, gutter, width)
        elif before is not None and number - before > 2:
            yield (("...", "ruler"),)
        yield from _numbered(number, by_line[number], lines, gutter, width)
        before = number


def segments(place: Place, lines: Sequence[str]) -> list[Segment]:
    """One segment per line of the place, the label on the last; the middle of a long span is left out."""
    site = place.site
    last = max(site.line, site.end_line)
    numbers = list(range(site.line, last + 1))
    if len(numbers) > SHOWN_OF_A_SPAN:
        numbers = [*numbers[: SHOWN_OF_A_SPAN - 1], last]
    parts = []
    for number in numbers:
        start, end = _extent(site, number, last, lines[number - 1])
        if start < end or number == last:
            label = place.label if number == last else ""
            parts.append(Segment(number, start, max(end, start + 1), label, place.primary))
    return parts


def gutter_of(places: Sequence[Place]) -> int:
    """How many columns the line numbers take."""
    return max(len(str(max(place.site.line, place.site.end_line))) for place in places)


def _extent(site: Site, number: int, last: int, line: str) -> tuple[int, int]:
    """Which characters of this line belong to the site; without columns, all but the indentation."""
    start = len(line) - len(line.lstrip())
    end = len(line.rstrip())
    if site.end_column > 0:
        if number == site.line:
            start = site.column - 1
        if number == last:
            end = site.end_column - 1
    return start, end


def _numbered(
    number: int, parts: Sequence[Segment], lines: Sequence[str], gutter: int, width: int
) -> Iterator[Line]:
    line = lines[number - 1]
    first, past = _window(line, parts, width - gutter - 3)
    head = CUT if first > 0 else ""
    tail = CUT if past < len(line.rstrip()) else ""
    text = (head + printable(line[first:past]) + tail).rstrip()
    yield ((f"{number:>{gutter}} |", "ruler"), (f" {text}" if text else "", ""))
    for part in sorted(parts, key=lambda part: (part.start, not part.primary, part.end)):
        yield _underline(line, part, first, past, cells(head), gutter)


def _underline(line: str, part: Segment, first: int, past: int, head: int, gutter: int) -> Line:
    start, end = max(part.start, first), min(part.end, past)
    lead = head + cells(printable(line[first:start]))
    length = max(1, cells(printable(line[start:end])))
    style: Style = "primary" if part.primary else "secondary"
    mark = ("^" if part.primary else "-") * length
    words = f" {printable(part.label)}" if part.label else ""
    return ((" " * gutter + " |", "ruler"), (" " * (lead + 1), ""), (mark + words, style))


def _window(line: str, parts: Sequence[Segment], room: int) -> tuple[int, int]:
    """Which characters of a line to show: all, or a stretch around its segments."""
    ends = _ends(line)
    if ends[-1] <= room:
        return 0, len(line)
    room -= 2  # for the two cuts
    start = min((part.start for part in parts), default=0)
    end = max((part.end for part in parts), default=0)
    first = min(start, len(ends) - 1)
    if ends[min(end, len(ends) - 1)] <= room:
        first = 0
    lead = min(LEAST_LEAD, first)
    first -= lead
    past = first
    while past < len(ends) - 1 and ends[past + 1] - ends[first] <= room:
        past += 1
    return first, max(past, first + 1)


@functools.lru_cache(maxsize=8)
def _ends(line: str) -> tuple[int, ...]:
    """In which column each character of a line begins, and last where the line ends."""
    widths = (cells(visible(character)) for character in line.rstrip())
    return tuple(itertools.accumulate(widths, initial=0))


def _ruler(gutter: int) -> Line:
    return ((" " * gutter + " |", "ruler"),)
