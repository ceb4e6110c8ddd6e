"""Builds the finding for a stretch of a source text, so that tests can name it by its words."""

from __future__ import annotations

from tensafe.findings import Action, Finding, Fix, Site
from tensafe.findings.source import split_lines
from tensafe.fixes import FixResult, apply

PATH = "/project/train.py"


def site_of(source: str, words: str, occurrence: int = 0) -> Site:
    """The site of a stretch of the text."""
    start = -1
    for _ in range(occurrence + 1):
        start = source.index(words, start + 1)
    line, column = _position(source, start)
    end_line, end_column = _position(source, start + len(words))
    return Site(PATH, line, column, end_line, end_column)


def finding_with(action: Action, safe: bool = True) -> Finding:
    return Finding("TS999", "a message", action.site, name="a-rule", fix=Fix(action, safe))


def fixed(source: str, *actions: Action) -> FixResult:
    """One round of fixes."""
    return apply(source, [finding_with(action) for action in actions], unsafe=False)


def assert_fixed(source: str, action: Action, expected: str) -> None:
    result = fixed(source, action)
    assert not result.refused, result.refused[0].why
    assert result.text == expected
    assert result.applied == 1


def assert_refused(source: str, action: Action, why: str) -> None:
    result = fixed(source, action)
    assert result.text == source
    assert result.applied == 0
    assert len(result.refused) == 1, result.text
    assert why in result.refused[0].why


def _position(source: str, offset: int) -> tuple[int, int]:
    before = split_lines(source[:offset])
    if not before:
        return 1, 1
    if before[-1].endswith(("\n", "\r")):
        return len(before) + 1, 1
    return len(before), len(before[-1]) + 1
