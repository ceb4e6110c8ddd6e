"""`tensafe check`: the same rules read from source, and their fixes."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from tensafe.checking.documents import Document, opened
from tensafe.cli.baselines import Known, known_to
from tensafe.cli.check_options import parsed
from tensafe.cli.outlet import Outlet, has_findings
from tensafe.cli.projects import Project, all_rules, check, opened_in, projects
from tensafe.findings import Finding, Record
from tensafe.findings.cells import split_cell

Look = Callable[[str, str], Sequence[Finding]]
Open = Callable[[str], Document | None]


def carry_out(argv: Sequence[str]) -> int:
    """Check the paths, and fix or show the difference when asked."""
    chosen = parsed(argv)
    if chosen.paths == ["-"]:
        from tensafe.cli import standard_input

        return standard_input.carry_out(chosen)
    from tensafe.report.terminal import progress

    some = projects(list(map(Path, chosen.paths)), chosen)
    known = known_to(chosen, some)
    outlet = Outlet(chosen, sys.stdout, all_rules(some), inputs=_inputs(some, chosen), what=INPUT)
    with progress("checking", sys.stderr) as bar:
        record = check(some, chosen, bar)
    if chosen.write_baseline:
        return known.write(record, outlet)
    record, hints = known.leave_out(record, outlet.sources)
    if chosen.diff or chosen.fix or chosen.unsafe_fixes:
        from tensafe.cli.fixing import Fixing

        fixing = Fixing(record, _look(some, known), chosen.unsafe_fixes, opened_in(some))
        if chosen.diff:
            return fixing.show_difference(outlet.stream)
        if fixing.write():
            outlet.forget_sources()
            record, hints = known.leave_out(check(some, chosen, None), outlet.sources)
        return tell(record, outlet, [fixing.hint(), *hints], chosen, opened_in(some))
    return tell(
        record, outlet, [fixable_words(record, chosen, opened_in(some)), *hints], chosen, opened_in(some)
    )


INPUT = "one of the files to check"


def _inputs(some: Sequence[Project], chosen: Namespace) -> Sequence[Path]:
    return [file for project in some for file in project.files()] if chosen.output else ()


def _look(some: Sequence[Project], known: Known) -> Look:
    def look(text: str, path: str) -> Sequence[Finding]:
        project = next((project for project in some if project.holds(path)), some[0])
        return known.new_in(project.look(text, path), text, path)

    return look


def tell(
    record: Record, outlet: Outlet, hints: Sequence[str], chosen: Namespace, open_: Open = opened
) -> int:
    """Tell the record, or its statistics; the exit status."""
    hint = "; ".join(filter(None, hints))
    if chosen.statistics:
        _tell_statistics(record, outlet, chosen, open_)
    else:
        outlet.tell(record, hint)
    if not chosen.statistics or chosen.format == "text":
        outlet.say_nothing_found(record, hint)
    return 2 if _none_read(record) else int(has_findings(record))


def _tell_statistics(record: Record, outlet: Outlet, chosen: Namespace, open_: Open) -> None:
    from tensafe.cli.fixing import fixable
    from tensafe.report.statistics import counted, render

    outlet.write(render(counted(record, fixable(record.findings, open_)), chosen.format == "json"))


def _none_read(record: Record) -> bool:
    files = record.summary.get("files")
    unread = {item.what for item in record.not_checked if split_cell(item.what)[1] is None}
    return not record.findings and isinstance(files, int) and 0 < files <= len(unread)


def fixable_words(record: Record, chosen: Namespace, open_: Open = opened) -> str:
    """`2 fixable with --fix, 1 more with --unsafe-fixes`: what really can be carried out."""
    if chosen.format not in ("text", "grouped") or not any(finding.fix for finding in record.findings):
        return ""
    from tensafe.cli.fixing import count_fixable

    safe, unsafe = count_fixable(record, open_)
    words = [f"{safe} fixable with --fix"] if safe else []
    if unsafe:
        words.append(f"{unsafe} {'more ' if safe else 'fixable '}with --unsafe-fixes")
    return ", ".join(words)
