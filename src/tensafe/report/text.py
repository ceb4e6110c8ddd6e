"""A record as text in the manner of rustc: the user's lines, every place underlined, one sentence each."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from tensafe.findings import Because, Finding, Record, Severity, Site
from tensafe.findings.cells import split_cell
from tensafe.report import copies_text
from tensafe.report.characters import begins_plainly, loggable
from tensafe.report.excerpt import Place, excerpt, gutter_of
from tensafe.report.places import shown_path
from tensafe.report.sources import Sources
from tensafe.report.style import Line, Style

PIPE_WIDTH = 110
SEVERITY_STYLES: dict[Severity, Style] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTICE: "notice",
}


@dataclass(frozen=True, slots=True)
class Change:
    """A part of the fix of a finding: these characters of a file become `text`."""

    site: Site
    text: str


@dataclass(frozen=True)
class View:
    """How to show a record: from which folder, how wide, with notices or without, what was told before."""

    root: str = field(default_factory=os.getcwd)
    sources: Sources = field(default_factory=Sources)
    width: int = PIPE_WIDTH
    notices: bool = False
    told: Set[Finding] = frozenset()
    hint: str = ""  # ends the closing line: how many findings have a fix, where the record went
    changes: Mapping[Finding, Sequence[Change]] = field(default_factory=dict)  # what their fixes would do


def one(finding: Finding) -> Finding:
    """The finding as it was when first seen, for comparing with one told earlier."""
    return replace(finding, count=1, rank=None, processes=(), memory=())


def shown(record: Record, notices: bool) -> list[Finding]:
    """The findings to show: errors and warnings, notices on request."""
    return [item for item in record.findings if notices or item.severity is not Severity.NOTICE]


def render(record: Record, view: View) -> Iterator[Line]:
    """Every finding, what was not checked, and the closing line; nothing for a clean record.

    Of several that a rule found at one line, those after the first have only the places that are new.
    """
    told: dict[Finding, list[Because]] = {}  # by the line and what is said of it, the other places
    for finding in shown(record, view.notices):
        places = told.get(_said_once(finding))
        if one(finding) in view.told:
            yield from _again(finding, (), "told above", view)
        elif places is not None:
            new = [item for item in finding.because if item not in places]
            yield from _again(finding, new, "line and help told above", view)
            places += new
        else:
            yield from render_finding(finding, view)
            told[_said_once(finding)] = list(finding.because)
        yield ()
    for item in record.not_checked:
        yield (("not checked", "strong"), (f": {_subject(item.what, view)}: {loggable(item.why)}", ""))
    if record.copies is not None:
        yield from copies_text.render(record.copies, view.root)
    if record.findings or record.not_checked:
        yield (("tensafe: ", "strong"), (closing(record, view), ""))


def _said_once(finding: Finding) -> Finding:
    return replace(one(finding), message="", because=())


def _again(finding: Finding, because: Sequence[Because], why: str, view: View) -> Iterator[Line]:
    """A finding of which much was told, with the places that were not."""
    places = _others(because)
    gutter = gutter_of(places) if places else 2
    yield _header(finding)
    yield _location("-->", finding.at, gutter, view, f" ({why}){_seen(finding, ' ')}")
    for path in dict.fromkeys(place.site.path for place in places):
        yield from _block([place for place in places if place.site.path == path], gutter, view)


def render_finding(finding: Finding, view: View) -> Iterator[Line]:
    """One finding: header, blocks, help."""
    places = [Place(finding.at, finding.label, primary=True), *_others(finding.because)]
    gutter = gutter_of(places)
    yield _header(finding)
    for path in dict.fromkeys(place.site.path for place in places):
        yield from _block([place for place in places if place.site.path == path], gutter, view)
    yield ((" " * gutter + " |", "ruler"),)
    if finding.help:
        yield from _note("help", finding.help, gutter, view.width)
    yield from _note("explain", f"tensafe explain {finding.name}{_seen(finding, '   ')}", gutter, view.width)


def _others(because: Iterable[Because]) -> list[Place]:
    return [Place(item.site, item.role + (f": {item.message}" if item.message else "")) for item in because]


def closing(record: Record, view: View) -> str:
    """`1 error, 2 warnings, 3 notices (shown with --notices) in train.py; 1 thing not checked`."""
    counts = []
    for severity in Severity:
        number = sum(finding.severity is severity for finding in record.findings)
        if number:
            counts.append(_plural(number, severity.value))
            if severity is Severity.NOTICE and not view.notices:
                counts[-1] += " (shown with --notices)"
    told = ", ".join(counts) + _in_files(record, view) if counts else nothing_found(record)
    unseen = len(record.not_checked)
    parts = [told, f"{_plural(unseen, 'thing')} not checked" if unseen else "", view.hint]
    return "; ".join(part for part in parts if part)


def nothing_found(record: Record) -> str:
    """`nothing found in 12 files`."""
    files = record.summary.get("files")
    return f"nothing found in {_plural(files, 'file')}" if isinstance(files, int) else "nothing found"


def _subject(what: str, view: View) -> str:
    """What was not checked; a file by its path as the findings show it."""
    return loggable(shown_path(what, view.root) if os.path.isabs(what) else what)


def _header(finding: Finding) -> Line:
    title = f"{finding.severity.value}[{finding.code}] {finding.name}"
    return ((title, SEVERITY_STYLES[finding.severity]), (f": {loggable(finding.message)}", "strong"))


def _block(places: list[Place], gutter: int, view: View) -> Iterator[Line]:
    """One file's places; when its lines cannot be shown, each place by its location alone."""
    arrow = "-->" if places[0].primary else ":::"
    lines = view.sources.lines(places[0].site.path)
    if not isinstance(lines, str) and all(view.sources.fits(place.site) for place in places):
        yield _location(arrow, places[0].site, gutter, view, "")
        yield from excerpt(places, lines, gutter, view.width)
        return
    why = lines if isinstance(lines, str) else "the file changed since"
    for number, place in enumerate(places):
        label = f": {loggable(place.label)}" if place.label else ""
        note = f" ({why})" if number == 0 else ""
        yield _location(arrow if number == 0 else ":::", place.site, gutter, view, label + note)


def _location(arrow: str, site: Site, gutter: int, view: View, note: str) -> Line:
    return ((" " * gutter + f"{arrow} ", "ruler"), (_where(site, view) + note, ""))


def _where(site: Site, view: View) -> str:
    column = f":{site.column}" if site.end_column else ""
    function = f" in {loggable(site.function)}" if site.function else ""
    return f"{loggable(shown_path(site.path, view.root))}:{site.line}{column}{function}"


def _note(title: str, words: str, gutter: int, width: int) -> Iterator[Line]:
    head = " " * gutter + " = "
    indent = " " * (len(head) + len(title) + 2)
    room = max(40, width - len(indent))
    first, *rest = textwrap.wrap(loggable(words), room, break_long_words=False, break_on_hyphens=False)
    yield ((head, "ruler"), (title, "strong"), (f": {first}", ""))
    for line in rest:
        yield ((indent + begins_plainly(line), ""),)


def _seen(finding: Finding, before: str) -> str:
    """How often, and by which processes where that was not the first alone."""
    times = f"seen {finding.count} times" if finding.count > 1 else ""
    who = finding.processes or ([f"rank {finding.rank}"] if finding.rank is not None else [])
    by = f"{'' if times else 'seen '}by {', '.join(map(loggable, who))}" if who else ""
    words = " ".join(part for part in (times, by) if part)
    return f"{before}({words})" if words else ""


def _in_files(record: Record, view: View) -> str:
    paths = {split_cell(finding.at.path)[0] for finding in record.findings}
    files = record.summary.get("files")
    if len(paths) == 1 and not (isinstance(files, int) and files > 1):
        return f" in {loggable(shown_path(paths.pop(), view.root))}"
    return (
        f" in {len(paths)} of {_plural(files, 'file')}"
        if isinstance(files, int) and files >= len(paths)  # else some lie in files that a checked one calls
        else f" in {len(paths)} files"
    )


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
