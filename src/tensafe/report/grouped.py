"""Findings file by file, one line each: what a person reads who fixes one file after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensafe.findings import Finding, Record
from tensafe.report.characters import begins_plainly, loggable
from tensafe.report.places import shown_path
from tensafe.report.text import View, closing, shown


def render(record: Record, view: View) -> str:
    """`src/a.py:` and its findings indented below, then the closing line."""
    by_path: dict[str, list[Finding]] = {}
    for finding in shown(record, view.notices):
        by_path.setdefault(finding.at.path, []).append(finding)
    lines: list[str] = []
    for path, findings in by_path.items():
        name = begins_plainly(loggable(shown_path(path, view.root)).lstrip())
        lines += [f"{name}:", *_rows(findings), ""]
    for item in record.not_checked:
        lines.append(f"not checked: {loggable(shown_path(item.what, view.root))}: {loggable(item.why)}")
    return "".join(f"{line}\n" for line in [*lines, f"tensafe: {closing(record, view)}"])


def _rows(findings: Sequence[Finding]) -> Iterator[str]:
    places = [f"{finding.at.line}:{finding.at.column}" for finding in findings]
    names = [f"{finding.code} {finding.name}" for finding in findings]
    for place, name, finding in zip(places, names, findings, strict=True):
        yield (
            f"  {place:>{max(map(len, places))}}  {finding.severity.value:7}  "
            f"{name:{max(map(len, names))}}  {loggable(finding.message)}"
        )
