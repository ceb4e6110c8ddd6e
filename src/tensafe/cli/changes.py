"""What the fix of each finding would change in its file, for the formats that carry fixes."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence

from tensafe.findings import Finding, Record, Site
from tensafe.findings.source import split_lines
from tensafe.fixes import Planned, planned
from tensafe.report.sources import Sources
from tensafe.report.text import Change


def changes_of(record: Record, sources: Sources) -> Mapping[Finding, Sequence[Change]]:
    """The changes of each finding whose fix can be carried out; none in notebooks, whose lines are JSON."""
    by_path: dict[str, list[Finding]] = {}
    for finding in record.findings:
        if finding.fix:
            by_path.setdefault(finding.fix.action.site.path, []).append(finding)
    return {
        plan.finding: _changes(plan, path, text)
        for path, findings in by_path.items()
        if (text := sources.text(path)) is not None
        for plan in planned(text, findings)
    }


def _changes(plan: Planned, path: str, text: str) -> list[Change]:
    starts = [0]
    for line in split_lines(text):
        starts.append(starts[-1] + len(line))
    return [
        Change(Site(path, *_place(starts, edit.start), *_place(starts, edit.end)), edit.text)
        for edit in plan.edits
    ]


def _place(starts: list[int], offset: int) -> tuple[int, int]:
    """Line and column, from 1, of a character."""
    line = bisect.bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1
