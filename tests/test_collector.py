"""What a run keeps of its findings is bounded: a fault told at every step is one finding with a count."""

from __future__ import annotations

from tensafe import collector as collectors
from tensafe.collector import Collector
from tensafe.facts import Site
from tensafe.findings import Finding


def test_a_fault_that_is_told_at_every_step_is_one_finding() -> None:
    told: list[Finding] = []
    collector = Collector([], told.append)
    for step in range(10_000):
        collector._add(Finding("TS206", f"the graphs of {step} steps are kept", Site("train.py", 3)), True)
    (finding,) = collector.record("run", {}).findings
    assert finding.count == 10_000
    assert finding.message == "the graphs of 0 steps are kept"
    assert len(told) == 1


def test_different_faults_are_kept_up_to_a_bound() -> None:
    collector = Collector([])
    for line in range(collectors.MOST_FINDINGS + 5):
        collector._add(Finding("TS101", "written", Site("train.py", line + 1)), False)
    record = collector.record("run", {})
    assert len(record.findings) == collectors.MOST_FINDINGS
    assert [item.what for item in record.not_checked] == ["further findings"]
