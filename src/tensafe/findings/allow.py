"""The comments `# tensafe: allow NAME` and `# tensafe: allow-file NAME`, which silence findings."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from tensafe.findings.finding import Finding

LinesOf = Callable[[str], Sequence[str]]
"""`lines_of(path)`: the lines of a source, with their ends; none when it cannot be read."""


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


class Allows:
    """What the comments of the sources allow."""

    def __init__(self, lines_of: LinesOf) -> None:
        self._lines_of = lines_of
        self._whole: dict[str, tuple[Sequence[str], list[int]]] = {}

    def uses(self, finding: Finding) -> Iterator[Use]:
        """Every comment that allows the finding: on its lines, alone on the line above, or for the file."""
        site = finding.at
        lines = self._lines_of(site.path)
        above = lines[site.line - 2] if 2 <= site.line <= len(lines) + 1 else ""
        first = site.line - 1 if above.strip().startswith("#") else site.line
        for number in range(max(1, first), min(len(lines), max(site.line, site.end_line)) + 1):
            yield from _uses(finding, number, lines[number - 1], whole_file=False)
        for number in self._for_the_file(site.path, lines):
            yield from _uses(finding, number, lines[number - 1], whole_file=True)

    def _for_the_file(self, path: str, lines: Sequence[str]) -> list[int]:
        """The lines with a comment for the whole file, looked for once; a program can tell much in a loop."""
        known = self._whole.get(path)
        if known is None or known[0] is not lines:
            known = self._whole[path] = (lines, _for_the_file(lines))
        return known[1]


def is_allowed(finding: Finding, allows: Allows) -> bool:
    """Whether a comment allows the finding."""
    return next(allows.uses(finding), None) is not None


def _for_the_file(lines: Sequence[str]) -> list[int]:
    if not any("allow-file" in line.lower() for line in lines):
        return []
    found = []
    for token in comments("".join(line if line.endswith(("\n", "\r")) else f"{line}\n" for line in lines)):
        allowed = permission(token.string)
        if allowed is not None and allowed.whole_file and stands_alone(token):
            found.append(token.start[0])
    return found


def stands_alone(comment: tokenize.TokenInfo) -> bool:
    """Whether a comment has its line for itself, as one for the whole file must."""
    return not comment.line[: comment.start[1]].strip()


def comments(text: str) -> Iterator[tokenize.TokenInfo]:
    """The real comments of a source, up to where it is no Python."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text.removeprefix("\ufeff"), newline="").readline):
            if token.type == tokenize.COMMENT:
                yield token
    except (tokenize.TokenError, SyntaxError):
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
