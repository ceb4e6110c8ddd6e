"""Writes the comment that allows a finding on its line, where a comment can stand."""

from __future__ import annotations

import io
import tokenize
from typing import NamedTuple

from tensafe.findings import Finding
from tensafe.findings.allow import ALLOW
from tensafe.findings.source import split_lines


class Insertion(NamedTuple):
    """Put `text` at this offset of the source."""

    offset: int
    text: str


def allow_here(source: str, finding: Finding) -> Insertion:
    """What allows the finding: its name in a comment on its own lines, else alone on the line above."""
    lines = split_lines(source)
    line = _free_line(source, finding, len(lines))
    if line is None:
        first = lines[finding.at.line - 1]
        indent = first[: len(first) - len(first.lstrip())]
        newline = first[len(first.rstrip("\r\n")) :] or "\n"
        start = sum(map(len, lines[: finding.at.line - 1]))
        return Insertion(start, f"{indent}# tensafe: allow {finding.name}{newline}")
    start = sum(map(len, lines[: line - 1]))
    text = lines[line - 1].rstrip()
    known = ALLOW.search(text)
    if known is not None and known["file"] is None and known["names"]:
        return Insertion(start + known.end("names"), f", {finding.name}")
    return Insertion(start + len(text), f"  # tensafe: allow {finding.name}")


def _free_line(source: str, finding: Finding, last: int) -> int | None:
    """The first line of the finding that does not end inside a string or with a backslash."""
    ends: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(source, newline="").readline):
            if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT):
                ends.add(token.start[0])
    except (tokenize.TokenError, SyntaxError):
        return None
    site = finding.at
    span = range(site.line, min(last, max(site.line, site.end_line)) + 1)
    return next((line for line in span if line in ends), None)
