"""`--baseline FILE` and `--write-baseline`: which findings are known, and which of those are gone."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tensafe.checking.baseline import Baseline, Fingerprint, read, written
from tensafe.cli.outlet import Outlet
from tensafe.cli.projects import Project, all_rules
from tensafe.findings import Finding, Record
from tensafe.findings.source import split_lines
from tensafe.report.characters import printable
from tensafe.report.sources import Sources

MOST_SHOWN = 10


class Known:
    """The baseline of this command, if it has one."""

    def __init__(self, path: Path | None, baseline: Baseline | None, some: Sequence[Project]) -> None:
        self._path = path
        self._baseline = baseline
        self._projects = some

    def write(self, record: Record, outlet: Outlet) -> int:
        """Write all that was found into the file."""
        from tensafe.report.write import write_whole

        assert self._path is not None
        text = written(record.findings, outlet.sources.line, self._path)
        write_whole(self._path, text.encode())
        number = sum(finding.count for finding in record.findings)
        outlet.say(f"{number} finding{'s' * (number != 1)} written to {self._path}")
        return 0

    def leave_out(
        self, record: Record, sources: Sources, sent: Path | None = None
    ) -> tuple[Record, list[str]]:
        """The record without what is known, and what is to be said of the baseline."""
        if self._baseline is None:
            return record, []
        checked = [sent] if sent else [file for project in self._projects for file in project.files()]
        codes = [rule.code for rule in all_rules(self._projects)]
        compared = self._baseline.compare(record.findings, sources.line, checked, codes)
        summary = {**record.summary, "baseline_known": compared.known, "baseline_gone": len(compared.gone)}
        hints = [f"{compared.known} known to {self._path}"] if compared.known else []
        hints += [self._gone(compared.gone)] if compared.gone else []
        return replace(record, findings=compared.new, summary=summary), hints

    def new_in(self, findings: Sequence[Finding], text: str, path: str) -> Sequence[Finding]:
        """The findings in a text that was fixed, without what is known."""
        if self._baseline is None:
            return findings
        lines, others = split_lines(text), Sources(None)

        def read_line(where: str, number: int) -> str:
            if where != path:
                return others.line(where, number)
            return lines[number - 1] if 0 < number <= len(lines) else ""

        return self._baseline.compare(findings, read_line, (), ()).new

    def _gone(self, gone: Sequence[Fingerprint]) -> str:
        """`2 of it are gone: TS106 in a.py, …; --write-baseline writes it anew`."""
        shown = [printable(f"{mark.rule} in {mark.path}") for mark in gone[:MOST_SHOWN]]
        shown += [f"{len(gone) - MOST_SHOWN} more"] if len(gone) > MOST_SHOWN else []
        words = "is" if len(gone) == 1 else "are"
        return (
            f"{len(gone)} of {self._path} {words} gone ({', '.join(shown)}): --write-baseline writes it anew"
        )


def known_to(chosen: Namespace, some: Sequence[Project]) -> Known:
    """What the baseline of the command line knows; raises TensafeError when it cannot be read or written."""
    if not chosen.baseline:
        return Known(None, None, some)
    from tensafe.report.write import refuse_overwriting, refuse_unwritable

    path = Path(chosen.baseline)
    if chosen.output:
        refuse_overwriting(Path(chosen.output), [path], "the baseline")
    if not chosen.write_baseline:
        return Known(path, read(path), some)
    inputs = [file for project in some for file in project.files()] if path.exists() else ()
    refuse_overwriting(path, inputs, "one of the files to check")
    refuse_unwritable(path)
    return Known(path, None, some)
