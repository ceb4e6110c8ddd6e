"""Carries out the fixes of many findings on one text; each must leave a text that parses."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tensafe.findings import (
    Action,
    AssignThroughIndex,
    CallInstead,
    Finding,
    OutOfPlace,
    SetKeyword,
    Wrap,
)
from tensafe.fixes import assign_through_index, call_instead, out_of_place, set_keyword, wrap
from tensafe.fixes.edits import Edit, Refusal, carried_out, collide, collide_among
from tensafe.fixes.source import Source

ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Refused:
    """A fix that was not carried out, and why."""

    finding: Finding
    why: str


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
    accepted: list[Edit] = []
    refused: list[Refused] = []
    applied = 0
    for finding in wanted:
        try:
            edits = _edits(finding, parsed)
        except Refusal as refusal:
            refused.append(Refused(finding, str(refusal)))
            continue
        if all(edit in accepted for edit in edits):
            continue  # the same edit for a second finding on the line
        new = [edit for edit in edits if edit not in accepted]
        if not any(collide(edit, other) for edit in new for other in accepted):
            accepted += new
            applied += 1
    return FixResult(carried_out(source, accepted), applied, refused)


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
    try:
        ast.parse(carried_out(source.text, edits))
    except SyntaxError:
        raise Refusal("the result would not parse") from None
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
