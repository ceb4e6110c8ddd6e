"""The comments `# tensafe: allow NAME` and `# tensafe: allow-file NAME`, which silence findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from tensafe.findings.finding import Finding

ReadLine = Callable[[str, int], str]
"""`read_line(path, line)`: a line of the source, or an empty string when there is none."""


class Permission(NamedTuple):
    """What one comment allows: rule names or codes in lower case; none of them means all."""

    names: tuple[str, ...]
    whole_file: bool


class Use(NamedTuple):
    """A comment that silenced a finding, by the name it was allowed under; empty when it allows all."""

    path: str
    line: int
    name: str


ALLOW = re.compile(
    r"#\s*tensafe:\s*allow(?P<file>-file)?(?![\w-])"
    r"(?:[\s:]+(?P<names>[A-Za-z][\w-]*(?:\s*,\s*[A-Za-z][\w-]*)*))?",
    re.I,
)
_DOCSTRING = re.compile(r"""[rRuU]?("{3}|'{3})""")


def permission(line: str) -> Permission | None:
    """What the comment on a line allows, if there is one."""
    comment = ALLOW.search(line)
    if not comment:
        return None
    names = tuple(name.strip().lower() for name in (comment["names"] or "").split(",") if name)
    return Permission(names, comment["file"] is not None)


def without(comment: str, names: Collection[str]) -> str:
    """The comment after these names are taken out of it; nothing when none is left."""
    found = ALLOW.search(comment)
    assert found is not None
    given = [name.strip() for name in (found["names"] or "").split(",")]
    left = [name for name in given if name.lower() not in names]
    if not left or not names:
        return ""
    start, end = found.span("names")
    return comment[:start] + ", ".join(left) + comment[end:]


def is_allowed(finding: Finding, read_line: ReadLine) -> bool:
    """Whether a comment on the finding's lines, alone on the line above, or for the whole file, allows it."""
    return next(allowing(finding, read_line), None) is not None


def allowing(finding: Finding, read_line: ReadLine) -> Iterator[Use]:
    """Every comment that allows the finding."""
    site = finding.at
    above = read_line(site.path, site.line - 1) if site.line > 1 else ""
    lines = [site.line - 1] if above.strip().startswith("#") else []
    lines += range(site.line, max(site.line, site.end_line) + 1)
    for line in lines:
        yield from _uses(finding, line, read_line(site.path, line), whole_file=False)
    for line, text in head(lambda number: read_line(site.path, number), site.line):
        yield from _uses(finding, line, text, whole_file=True)


def head(read_line: Callable[[int], str], end: int) -> Iterator[tuple[int, str]]:
    """The comment lines before the first statement of a file that is no docstring, up to a line."""
    quote = ""
    for number in range(1, end):
        line = read_line(number)
        text = line.strip().removeprefix("\ufeff")
        if quote:
            quote = "" if quote in text else quote
        elif text.startswith("#"):
            yield number, line
        elif opening := _DOCSTRING.match(text):
            quote = "" if opening[1] in text[opening.end() :] else opening[1]
        elif text:
            return


def _uses(finding: Finding, line: int, text: str, whole_file: bool) -> Iterator[Use]:
    allowed = permission(text)
    if allowed is None or allowed.whole_file is not whole_file:
        return
    if not allowed.names:
        yield Use(finding.at.path, line, "")
    for name in allowed.names:
        if name in (finding.name, finding.code.lower()):
            yield Use(finding.at.path, line, name)
