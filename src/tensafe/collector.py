"""Collects what the rules say to an engine's questions: allowed lines dropped, identical findings counted."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence

from tensafe import __version__
from tensafe.facts import Call, Certainty, History, Kind
from tensafe.findings import Finding, NotChecked, Record, Severity, collapse
from tensafe.findings.allow import is_allowed
from tensafe.rules._loader import Rule

MOST_FINDINGS = 10_000


class Collector:
    """Asks the rules on behalf of one engine and keeps their answers."""

    def __init__(self, rules: Sequence[Rule], tell_now: Callable[[Finding], None] | None = None) -> None:
        self._rules = {kind: [rule for rule in rules if kind in rule.asked_at] for kind in Kind}
        self._tell_now = tell_now
        self._counts: dict[Finding, int] = {}
        self._not_checked: dict[str, str] = {}

    def ask(self, call: Call, history: History) -> None:
        for rule in self._rules[call.kind]:
            for finding in rule.judge(call, history):
                if not is_allowed(finding, _read_line):
                    self._add(finding, stops=_stops(call, rule))

    def _add(self, finding: Finding, stops: bool) -> None:
        if finding not in self._counts and len(self._counts) >= MOST_FINDINGS:
            self.not_checked("further findings", f"only the first {MOST_FINDINGS} different ones are kept")
            return
        self._counts[finding] = self._counts.get(finding, 0) + 1
        if stops and self._tell_now and self._counts[finding] == 1:
            self._tell_now(finding)

    def not_checked(self, what: str, why: str) -> None:
        self._not_checked.setdefault(what, why)

    def record(self, engine: str, summary: dict[str, float | int | str]) -> Record:
        from dataclasses import replace

        findings = collapse(replace(finding, count=count) for finding, count in self._counts.items())
        loud = sum(finding.severity is not Severity.NOTICE for finding in findings)
        return Record(
            engine=engine,
            findings=findings,
            not_checked=tuple(NotChecked(what, why) for what, why in self._not_checked.items()),
            summary={**summary, "findings": loud, "notices": len(findings) - loud},
            tool_version=__version__,
        )


def _stops(call: Call, rule: Rule) -> bool:
    """Whether the program stops on what is found: such a finding is told at once."""
    if call.kind is Kind.REFUSED:
        return call.certainty is not Certainty.OFTEN_MEANT
    return call.kind is Kind.BACKWARD and rule.name == "saved-tensor-modified"


def _read_line(path: str, line: int) -> str:
    return linecache.getline(path, line)
