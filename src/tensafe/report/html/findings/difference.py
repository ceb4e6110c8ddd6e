"""The fix of a finding as a diff: the lines that go and the lines that come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensafe.findings import Fix
from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.findings.source import Setting
from tensafe.report.html.findings.words import words
from tensafe.report.html.wording import shortened
from tensafe.report.text import Change

MOST_LINES = 40
MOST_CHARACTERS = 400

Hunk = tuple[int, list[str], list[str]]
"""The number of its first line, the old lines and the new ones."""


def difference(fix: Fix | None, changes: Sequence[Change], setting: Setting) -> Html:
    """The title and, where it can be carried out, every changed line."""
    if fix is None:
        return Html("")
    title = fix.title or "a fix"
    safety = "safe" if fix.safe else "unsafe: it may change more than the bug"
    head = element("p", element("b", "Fix: "), words(title, setting.allowance), f" ({safety})")
    rows = [row for hunk in hunks(changes, setting) for row in _rows(hunk)]
    body = element("tbody", *rows[:MOST_LINES])
    table = element("table", body, role="presentation") if rows else ""
    left = len(rows) - MOST_LINES
    rest = element("p", f"and {left:,} more lines", class_="f-faint") if left > 0 else ""
    return element("div", join([head, table, rest]), class_="f-fix")


def hunks(changes: Sequence[Change], setting: Setting) -> Iterator[Hunk]:
    """Changes whose lines touch are one hunk; nothing where the lines cannot be shown."""
    ordered = sorted(changes, key=lambda change: (change.site.line, change.site.column))
    together: list[Change] = []
    for change in ordered:
        if together and change.site.line > together[-1].site.end_line:
            yield from _hunk(together, setting)
            together = []
        together.append(change)
    if together:
        yield from _hunk(together, setting)


def _hunk(changes: Sequence[Change], setting: Setting) -> Iterator[Hunk]:
    lines = setting.sources.lines(changes[0].site.path)
    first, last = changes[0].site.line, max(change.site.end_line for change in changes)
    if isinstance(lines, str) or not 1 <= first <= last <= len(lines) + 1:
        return
    old = list(lines[first - 1 : last])
    new = "\n".join([*old, *([""] if last > len(lines) else [])])
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line) + 1)
    for change in reversed(changes):
        site = change.site
        start, end = starts[site.line - first] + site.column - 1, starts[site.end_line - first]
        new = new[:start] + change.text + new[end + site.end_column - 1 :]
    yield _trimmed(first, old, new.split("\n"))


def _trimmed(first: int, old: list[str], new: list[str]) -> Hunk:
    """Without the lines that stay."""
    while old and new and old[0] == new[0]:
        old, new, first = old[1:], new[1:], first + 1
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return first, old, new


def _rows(hunk: Hunk) -> Iterator[Html]:
    first, old, new = hunk
    for kind, sign, lines in (("f-gone", "-", old), ("f-come", "+", new)):
        for number, line in enumerate(lines, first):
            code = shortened(line.rstrip("\r"), MOST_CHARACTERS)
            changed = element("del" if sign == "-" else "ins", code)
            place = str(number) if sign == "-" else ""
            yield element("tr", *(element("td", cell) for cell in (place, sign, changed)), class_=kind)
