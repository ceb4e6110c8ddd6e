"""Carries out the fixes of many findings on one text; each must leave a text that parses."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tensafe.findings import (
    Action,
    AssignThroughIndex,
    CallInstead,
    Disallow,
    DropCall,
    Finding,
    OutOfPlace,
    SetKeyword,
    Wrap,
)
from tensafe.fixes import (
    assign_through_index,
    call_instead,
    disallow,
    drop_call,
    out_of_place,
    set_keyword,
    wrap,
)
from tensafe.fixes.edits import Accepted, Edit, Refusal, carried_out, collide_among
from tensafe.fixes.source import Source

ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Refused:
    """A fix that was not carried out, and why."""

    finding: Finding
    why: str


@dataclass(frozen=True, slots=True)
class Planned:
    """The edits that one fix alone would make."""

    finding: Finding
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class FixResult:
    """The new text, how many fixes made it, and those that could not be carried out."""

    text: str
    applied: int
    refused: list[Refused]


def apply(source: str, findings: Iterable[Finding], unsafe: bool) -> FixResult:
    """One round: of fixes that collide the first is carried out, the others come up in the next round."""
    wanted = [item for item in findings if item.fix and (unsafe or item.fix.safe)]
    try:
        parsed = Source(source)
    except (SyntaxError, ValueError) as error:
        return FixResult(source, 0, [Refused(item, f"the file does not parse: {error}") for item in wanted])
    chosen, refused = _choose(wanted, parsed)
    broken = _broken([edits for _, edits in chosen], source)
    if broken:
        bad = [finding for finding, edits in chosen if edits in broken]
        refused += [Refused(finding, "the result would not parse") for finding in bad]
        chosen, _ = _choose([item for item in wanted if item not in bad], parsed)
    return FixResult(carried_out(source, _all(edits for _, edits in chosen)), len(chosen), refused)


def planned(source: str, findings: Iterable[Finding]) -> list[Planned]:
    """What each fix that can be carried out would edit, each as if it were alone."""
    try:
        parsed = Source(source)
    except (SyntaxError, ValueError):
        return []
    found = []
    for finding in findings:
        try:
            edits = _edits(finding, parsed) if finding.fix else []
        except Refusal:
            continue
        if edits and not _broken([edits], source):
            found.append(Planned(finding, tuple(sorted(edits))))
    return found


def _choose(wanted: list[Finding], source: Source) -> tuple[list[tuple[Finding, list[Edit]]], list[Refused]]:
    """The findings to fix, each with the edits that it adds, and those whose fix cannot be carried out."""
    accepted = Accepted()
    chosen: list[tuple[Finding, list[Edit]]] = []
    refused: list[Refused] = []
    for finding in wanted:
        try:
            edits = _edits(finding, source)
        except Refusal as refusal:
            refused.append(Refused(finding, str(refusal)))
            continue
        new = [edit for edit in edits if edit not in accepted]
        if new and not any(map(accepted.collides, new)):  # no new one: a second finding on the line
            accepted.add(new)
            chosen.append((finding, new))
    return chosen, refused


def _broken(fixes: list[list[Edit]], source: str) -> list[list[Edit]]:
    """The fixes after which the text would not parse, found by halves: mostly there is none."""
    try:
        ast.parse(carried_out(source, _all(fixes)))
        return []
    except SyntaxError:
        half = len(fixes) // 2
        return [*_broken(fixes[:half], source), *_broken(fixes[half:], source)] if half else fixes


def _all(fixes: Iterable[list[Edit]]) -> list[Edit]:
    return [edit for edits in fixes for edit in edits]


def until_still(
    text: str,
    findings: Sequence[Finding],
    look: Callable[[str], Sequence[Finding]],
    unsafe: bool,
) -> FixResult:
    """Fix, look again, fix again, until a round changes nothing; the fixes of all rounds are counted."""
    applied = 0
    for _ in range(ROUNDS):
        result = apply(text, findings, unsafe)
        applied += result.applied
        if not result.applied:
            break
        text = result.text
        findings = look(text)
    return FixResult(text, applied, result.refused)


def _edits(finding: Finding, source: Source) -> list[Edit]:
    assert finding.fix is not None
    edits = _carry_out(finding.fix.action, source)
    if collide_among(edits):
        raise Refusal("the edits of the fix overlap")
    return edits


def _carry_out(action: Action, source: Source) -> list[Edit]:
    match action:
        case OutOfPlace():
            return out_of_place.edits(action, source)
        case AssignThroughIndex():
            return assign_through_index.edits(action, source)
        case Wrap():
            return wrap.edits(action, source)
        case CallInstead():
            return call_instead.edits(action, source)
        case SetKeyword():
            return set_keyword.edits(action, source)
        case DropCall():
            return drop_call.edits(action, source)
        case Disallow():
            return disallow.edits(action, source)
