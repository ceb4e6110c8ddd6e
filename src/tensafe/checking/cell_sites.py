"""Findings in a notebook: from lines of the joined program to lines of cells, and back for their fixes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tensafe.checking.outcome import Outcome
from tensafe.facts import Site
from tensafe.findings import Finding, NotChecked
from tensafe.findings.allow import Use
from tensafe.findings.cells import cell_path, split_cell
from tensafe.notebooks import Program

MoveSite = Callable[[Site], Site]


def in_cells(outcome: Outcome, program: Program, path: str) -> None:
    """Rename everything in the notebook `path` to its cells, and tell of the cells that were left out."""

    def place(line: int) -> tuple[str, int]:
        number, inside = program.place(line)
        return cell_path(path, number), inside

    def move(site: Site) -> Site:
        if site.path != path:
            return site
        cell, line = place(site.line)
        return _replaced(site, cell, line)

    def renamed(where: str, line: int) -> tuple[str, int]:
        return place(line) if where == path else (where, line)

    outcome.findings = [moved(finding, move) for finding in outcome.findings]
    outcome.uses = [Use(*renamed(use.path, use.line), use.name) for use in outcome.uses]
    for number, comment in enumerate(outcome.comments):
        cell, line = renamed(comment.path, comment.line)
        outcome.comments[number] = comment._replace(path=cell, line=line)
    outcome.not_checked += [NotChecked(cell_path(path, cell.number), cell.why) for cell in program.broken]


def in_program(finding: Finding, program: Program, path: str) -> Finding:
    """The inverse, for one finding."""

    def move(site: Site) -> Site:
        file, cell = split_cell(site.path)
        if file != path or cell is None:
            return site
        line = program.line(cell, site.line)
        return _replaced(site, path, line)

    return moved(finding, move)


def _replaced(site: Site, path: str, line: int) -> Site:
    return replace(site, path=path, line=line, end_line=site.end_line and line + site.end_line - site.line)


def moved(finding: Finding, move: MoveSite) -> Finding:
    """The finding with every site in it moved."""
    fix = finding.fix
    return replace(
        finding,
        at=move(finding.at),
        because=tuple(replace(item, site=move(item.site)) for item in finding.because),
        fix=fix and replace(fix, action=replace(fix.action, site=move(fix.action.site))),
    )
