"""The records of several processes as one: identical findings once, with who saw them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tensafe.findings.copies import CopyLine
from tensafe.findings.finding import Finding, NotChecked, Severity
from tensafe.findings.record import Record, alike

FIRST = "main process"
MOST_NAMES = 8


@dataclass(frozen=True, slots=True)
class Told:
    """What one process told: its record, by what name, and its rank where there are ranks."""

    record: Record
    process: str = ""  # the program's first process has no name
    rank: int | None = None


def merge(told: Sequence[Told]) -> Record:
    """The first record with what the others add; its summary and its engine stay."""
    first = told[0].record
    findings = _merged_findings(told)
    loud = sum(finding.severity is not Severity.NOTICE for finding in findings)
    summary = {**first.summary, "findings": loud, "notices": len(findings) - loud}
    if len(told) > 1:
        summary["processes"] = len(told)
    return replace(
        first,
        findings=findings,
        not_checked=_merged_not_checked(one.record for one in told),
        copies=_merged_copies([one.record.copies for one in told if one.record.copies is not None]),
        summary=summary,
    )


def _merged_findings(told: Sequence[Told]) -> tuple[Finding, ...]:
    first: dict[Finding, Finding] = {}
    counts: Counter[Finding] = Counter()
    ranks: dict[Finding, set[int | None]] = {}
    names: dict[Finding, dict[str, None]] = {}  # in the order of first sight
    for one in told:
        for finding in one.record.findings:
            key = replace(alike(finding), rank=None, processes=())
            first.setdefault(key, finding)
            counts[key] += finding.count
            ranks.setdefault(key, set()).add(finding.rank if one.rank is None else one.rank)
            names.setdefault(key, {}).update(dict.fromkeys(finding.processes or (one.process,)))
    return tuple(
        replace(finding, count=counts[key], rank=_rank(ranks[key]), processes=_shown(list(names[key])))
        for key, finding in first.items()
    )


def _rank(ranks: set[int | None]) -> int | None:
    """The rank of all who saw it, where that is one and the same."""
    return next(iter(ranks)) if len(ranks) == 1 else None


def _shown(names: list[str]) -> tuple[str, ...]:
    if names == [""]:
        return ()
    shown = sorted((name or FIRST for name in names[:MOST_NAMES]), key=_in_order)
    return (*shown, *([f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []))


def _in_order(name: str) -> tuple[bool, list[tuple[bool, int, str]]]:
    """The first process first; numbers by their value, so that rank 2 comes before rank 10."""
    words = name.replace("-", " ").replace(",", " ").split()
    return name != FIRST, [(word.isdigit(), int(word) if word.isdigit() else 0, word) for word in words]


def _merged_not_checked(records: Iterable[Record]) -> tuple[NotChecked, ...]:
    by_subject: dict[str, NotChecked] = {}
    for record in records:
        for item in record.not_checked:
            by_subject.setdefault(item.what, item)
    return tuple(by_subject.values())


def _merged_copies(tables: Sequence[Sequence[CopyLine]]) -> tuple[CopyLine, ...] | None:
    if not tables:
        return None
    rows: dict[tuple[object, ...], CopyLine] = {}
    for row in (row for table in tables for row in table):
        key = (row.site, row.op, row.hidden)
        known = rows.get(key)
        if known is None:
            rows[key] = row
            continue
        needed = known.needed if known.needed == row.needed else "partly"
        rows[key] = replace(
            known, times=known.times + row.times, nbytes=known.nbytes + row.nbytes, needed=needed
        )
    return tuple(rows.values())
