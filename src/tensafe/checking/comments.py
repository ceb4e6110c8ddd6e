"""The comments of a file that allow something, where they stand, and those that allow nothing there is."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from tensafe.facts import Site
from tensafe.findings import Disallow, Finding, Fix, Severity
from tensafe.findings.allow import ALLOW, Use, comments, permission, stands_alone
from tensafe.rules._loader import Rule, catalogue

CODE, NAME = "TS001", "unused-allow"
PAGE = """\
# unused-allow (TS001)

A comment `# tensafe: allow NAME` that silences nothing. `tensafe check --unused-allows` reports it.

## Why it matters

The comment outlives the code that it was written for, and then hides the next fault on its line.

## What is judged

Only names of rules that were asked and that source can show. A comment may still silence a finding of
`tensafe run`, or, where only a part of the project is checked, one that starts in another file.

An `allow-file` works on a line of its own, anywhere in the file, as `# ruff: noqa` does. One behind code
silences nothing and is always reported, without a fix.

## Fix safety

Safe: `--fix` takes the unused names out of the comment, and the comment away when none is left.
"""


class AllowComment(NamedTuple):
    """A comment that allows something: its place, and the names in it in lower case; none means all."""

    path: str
    line: int
    column: int
    end_column: int
    names: tuple[str, ...]
    whole_file: bool
    misplaced: bool  # for the whole file, but behind code


def allow_comments(text: str, path: str) -> list[AllowComment]:
    """The real comments that allow something; one of the same words inside a string is none."""
    if ALLOW.search(text) is None:
        return []
    found = []
    for token in comments(text):
        allowed = permission(token.string)
        if allowed is not None:
            line, column = token.start
            start, end = _own_part(token.string)
            misplaced = allowed.whole_file and not stands_alone(token)
            found.append(
                AllowComment(path, line, column + start + 1, column + end + 1, *allowed, misplaced=misplaced)
            )
    return found


def _own_part(comment: str) -> tuple[int, int]:
    """The part of `# noqa  # tensafe: allow graph-cut  # why` that is ours."""
    found = ALLOW.search(comment)
    assert found is not None
    following = comment.find("#", found.end())
    return found.start(), following if following > 0 else len(comment.rstrip())


def unused(
    given: Iterable[AllowComment],
    uses: Iterable[Use],
    codes_asked: Callable[[str], Collection[str]],
) -> list[Finding]:
    """A finding for each comment with a name that silenced nothing; `codes_asked(path)` may be judged."""
    used = {(use.path, use.line, use.name) for use in uses}
    found = []
    for comment in given:
        if comment.misplaced:
            found.append(_misplaced(comment))
            continue
        asked = codes_asked(comment.path)
        idle = [name for name in comment.names if _is_idle(name, comment, used, asked)]
        bare = not comment.names and (*_place(comment), "") not in used
        if idle or (bare and shown_in_source() <= set(asked)):
            found.append(_finding(comment, idle))
    return found


def _is_idle(
    name: str, comment: AllowComment, used: set[tuple[str, int, str]], asked: Collection[str]
) -> bool:
    rule = _by_words().get(name)
    if rule is None:
        return True
    return rule.code in asked and rule.code in shown_in_source() and (*_place(comment), name) not in used


def _place(comment: AllowComment) -> tuple[str, int]:
    return comment.path, comment.line


@functools.cache
def shown_in_source() -> frozenset[str]:
    """The codes of the rules of which `check` sees an example at least."""
    return frozenset(
        rule.code
        for rule in catalogue()
        if any(hasattr(example, "expected") and example.expected("check") for example in rule.examples)
    )


@functools.cache
def _by_words() -> dict[str, Rule]:
    return {word: rule for rule in catalogue() for word in (rule.name, rule.code.lower())}


def _finding(comment: AllowComment, idle: list[str]) -> Finding:
    word = "allow-file" if comment.whole_file else "allow"
    at = Site(comment.path, comment.line, comment.column, comment.line, comment.end_column)
    return Finding(
        CODE,
        f"this `{word}` silences nothing" + (f": {', '.join(map(_reason, idle))}" if idle else ""),
        at,
        label="nothing to allow",
        name=NAME,
        severity=Severity.WARNING,
        help="take it away: it would hide the next fault here",
        fix=Fix(Disallow(at, tuple(idle)), safe=True, title="take the unused `allow` away"),
    )


def _misplaced(comment: AllowComment) -> Finding:
    """No fix: whoever wrote it meant the file."""
    return Finding(
        CODE,
        "this `allow-file` silences nothing: it stands behind code",
        Site(comment.path, comment.line, comment.column, comment.line, comment.end_column),
        label="not on a line of its own",
        name=NAME,
        severity=Severity.WARNING,
        help="put it on a line of its own, anywhere in the file",
    )


def _reason(name: str) -> str:
    if name in _by_words():
        return f"no {name} here"
    near = difflib.get_close_matches(name, _by_words(), n=1)
    return f"no rule is called {name!r}" + (f" (did you mean {near[0]}?)" if near else "")
