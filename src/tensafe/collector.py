"""Collects what the rules say to an engine's questions: allowed lines dropped, identical findings counted."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from tensafe import __version__
from tensafe.facts import Call, Certainty, History, Kind
from tensafe.findings import CopyLine, Finding, NotChecked, Record, Severity, alike
from tensafe.findings.allow import Allows, is_allowed
from tensafe.rules._loader import Rule

MOST_FINDINGS = 10_000


class Collector:
    """Asks the rules on behalf of one engine and keeps their answers."""

    def __init__(self, rules: Sequence[Rule], tell_now: Callable[[Finding], None] | None = None) -> None:
        self._rules = {kind: [rule for rule in rules if kind in rule.asked_at] for kind in Kind}
        self._tell_now = tell_now
        self._first: dict[Finding, Finding] = {}  # by what those of one fault have in common
        self._counts: Counter[Finding] = Counter()
        self._not_checked: dict[str, str] = {}
        self._allows = Allows(linecache.getlines)
        self.on_new: Callable[[Finding], None] | None = None

    def ask(self, call: Call, history: History) -> None:
        for rule in self._rules[call.kind]:
            for finding in rule.judge(call, history):
                if not is_allowed(finding, self._allows):
                    self._add(finding, stops=_stops(call, rule))

    def _add(self, finding: Finding, stops: bool) -> None:
        key = alike(finding)
        if key not in self._first and len(self._first) >= MOST_FINDINGS:
            self.not_checked("further findings", f"only the first {MOST_FINDINGS} different ones are kept")
            return
        self._first.setdefault(key, finding)
        self._counts[key] += 1
        if self._counts[key] == 1:
            if stops and self._tell_now:
                self._tell_now(finding)
            if self.on_new is not None:
                self.on_new(finding)

    def not_checked(self, what: str, why: str) -> None:
        self._not_checked.setdefault(what, why)

    def start_over(self) -> None:
        """Forget everything that was told and tell nobody at once: a forked child's findings are its own."""
        self._first.clear()
        self._counts.clear()
        self._not_checked.clear()
        self._tell_now = self.on_new = None

    def record(
        self,
        engine: str,
        summary: dict[str, float | int | str],
        copies: tuple[CopyLine, ...] | None = None,
    ) -> Record:
        findings = tuple(replace(finding, count=self._counts[key]) for key, finding in self._first.items())
        loud = sum(finding.severity is not Severity.NOTICE for finding in findings)
        return Record(
            engine=engine,
            findings=findings,
            not_checked=tuple(NotChecked(what, why) for what, why in self._not_checked.items()),
            summary={**summary, "findings": loud, "notices": len(findings) - loud},
            tool_version=__version__,
            copies=copies,
        )


def _stops(call: Call, rule: Rule) -> bool:
    """Whether the program stops on what is found: such a finding is told at once."""
    if call.kind is Kind.REFUSED:
        return call.certainty is not Certainty.OFTEN_MEANT
    return call.kind is Kind.BACKWARD and rule.name == "saved-tensor-modified"


class Healing(Collector):
    """The collector of a healed program: backward used the right values, and the program goes on."""

    def ask(self, call: Call, history: History) -> None:
        self._healed = call.kind is Kind.BACKWARD
        super().ask(call, history)

    def _add(self, finding: Finding, stops: bool) -> None:
        if self._healed:
            healed = f"{finding.message} (healed: this run used the values from before the write)"
            finding, stops = replace(finding, message=healed), False
        super()._add(finding, stops)
