"""The source lines of a finding, its places marked and named below, as one table for each file."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tensafe.findings import Finding, Site
from tensafe.report.characters import cells, printable
from tensafe.report.excerpt import Place, Segment, segments
from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.findings.words import plain_words, words
from tensafe.report.html.wording import shortened
from tensafe.report.places import shown_path
from tensafe.report.sources import Sources

MOST_CHARACTERS = 240
"""A longer line is cut to so many characters around what is marked."""
LEAD = 40
MOST_CODE = 100
MOST_PLACES = 12


@dataclass(frozen=True)
class Setting:
    """How findings are shown: whose lines, from which folder, with how many lines around each place."""

    sources: Sources
    root: str
    around: int = 0
    allowance: int = 2_000  # characters of any one text


def places_of(finding: Finding) -> list[Place]:
    """The primary place first."""
    others = [
        Place(item.site, f"{item.role}: {item.message}" if item.message else item.role)
        for item in finding.because[: MOST_PLACES - 1]
    ]
    return [Place(finding.at, finding.label, primary=True), *others]


def where(site: Site, setting: Setting, column: bool = True) -> str:
    """`src/train.py:31:5`."""
    place = f"{shortened(shown_path(site.path, setting.root), setting.allowance)}:{site.line}"
    return f"{place}:{site.column}" if column and site.end_column else place


def source(finding: Finding, setting: Setting) -> Html:
    """Every file of the finding, the one of the primary place first."""
    places = places_of(finding)
    blocks = [
        _block(path, [place for place in places if place.site.path == path], finding, setting)
        for path in dict.fromkeys(place.site.path for place in places)
    ]
    left = len(finding.because) + 1 - len(places)
    rest = element("p", f"and {left:,} more places", class_="f-faint") if left else ""
    return join([*blocks, rest])


def _block(path: str, places: Sequence[Place], finding: Finding, setting: Setting) -> Html:
    lines = setting.sources.lines(path)
    name = element("bdi", shortened(shown_path(path, setting.root), setting.allowance))
    if isinstance(lines, str) or not all(setting.sources.fits(place.site) for place in places):
        why = lines if isinstance(lines, str) else "the file changed since"
        return join([element("p", name, f": {why}", class_="f-path"), brief(places, setting)])
    numbered = _numbered(places, lines, setting)
    rows = [_row(number, parts, lines) for number, parts in numbered]
    caption = element("caption", name) if path != finding.at.path else ""
    return element("table", caption, element("tbody", *rows), class_="f-source", role="presentation")


def brief(places: Sequence[Place], setting: Setting) -> Html:
    """Each place with its words, and its code where that can be shown."""
    return element("ul", *(_alone(place, setting) for place in places), class_="f-places")


def _alone(place: Place, setting: Setting) -> Html:
    label = join([" ", words(shortened(place.label, setting.allowance))]) if place.label else ""
    code = code_at(place.site, setting, MOST_CODE)
    shown = join([" ", element("code", code)]) if code else ""
    return element("li", element("bdi", where(place.site, setting)), label, shown)


def _numbered(
    places: Sequence[Place], lines: Sequence[str], setting: Setting
) -> Iterator[tuple[int, list[Segment]]]:
    """The lines to show in their order, 0 for a gap, with what is marked on each."""
    marked: dict[int, list[Segment]] = {}
    for place in places:
        label = shortened(place.label, setting.allowance)
        for part in segments(Place(place.site, label, place.primary), lines):
            marked.setdefault(part.line, []).append(part)
    near = _near(marked, lines, setting.around)
    before = near[0] - 1
    for number in near:
        if number - before == 2:
            yield number - 1, []
        elif number - before > 2:
            yield 0, []
        yield number, marked.get(number, [])
        before = number


def _near(marked: Collection[int], lines: Sequence[str], around: int) -> list[int]:
    """The marked lines and those around them, but no blank ones at the rim."""
    near = set(marked)
    for line in marked:
        for rim in (range(line - around, line), range(line + around, line, -1)):
            near |= set(itertools.dropwhile(lambda number: _is_blank(number, lines), rim))
    return sorted(near)


def _is_blank(number: int, lines: Sequence[str]) -> bool:
    return not 0 < number <= len(lines) or not lines[number - 1].strip()


def _row(number: int, parts: Sequence[Segment], lines: Sequence[str]) -> Html:
    """A line, and under each mark its words, as far in as the mark."""
    if not number:
        return element("tr", element("td", "⋮"), element("td"), class_="f-gap")
    line = lines[number - 1].rstrip()
    first, past = _window(line, parts)
    head, tail = ("…" if first else ""), ("…" if past < len(line) else "")
    named = sorted((part for part in parts if part.label), key=lambda part: (not part.primary, part.start))
    said = [_said(line, part, first, past, head) for part in named]
    code = element("td", head, *_pieces(line, parts, first, past), tail, *said)
    kind = "f-at" if any(part.primary for part in parts) else "f-near" if parts else None
    return element("tr", element("td", str(number)), code, class_=kind)


def _said(line: str, part: Segment, first: int, past: int, head: str) -> Html:
    lead = cells(head) + cells(printable(line[first : min(max(part.start, first), past)]))
    return element("b" if part.primary else "em", Html(f"\n{' ' * lead}"), "↑ ", words(part.label))


def _pieces(line: str, parts: Sequence[Segment], first: int, past: int) -> Iterator[str]:
    """The line cut where marks begin and end; a primary mark wins."""
    edges = {first, past}
    for part in parts:
        edges |= {min(max(edge, first), past) for edge in (part.start, part.end)}
    cuts = sorted(edges)
    for start, end in itertools.pairwise(cuts):
        over = [part for part in parts if part.start <= start and part.end >= end]
        if not over:
            yield line[start:end]
        else:
            primary = any(part.primary for part in over)
            yield element("mark", line[start:end], class_=None if primary else "f-other")


def _window(line: str, parts: Sequence[Segment]) -> tuple[int, int]:
    if len(line) <= MOST_CHARACTERS:
        return 0, len(line)
    start = min((part.start for part in parts), default=0)
    first = max(0, min(start - LEAD, len(line) - MOST_CHARACTERS))
    return first, first + MOST_CHARACTERS


def code_at(site: Site, setting: Setting, most: int) -> str:
    """The text of a site on one line, nothing where it cannot be shown."""
    lines = setting.sources.lines(site.path)
    if isinstance(lines, str) or not setting.sources.fits(site):
        return ""
    line = lines[site.line - 1]
    whole = site.end_line in (0, site.line) and site.end_column > site.column
    return plain_words(line[site.column - 1 : site.end_column - 1] if whole else line.strip(), most)
