"""Writes that the runtime engine cannot see being made: it sees memory change, and no wrapped call did it."""

from __future__ import annotations

import ast
from collections import defaultdict

from tensafe.facts import Call, History, Site
from tensafe.static.engine import room
from tensafe.static.machine import Machine
from tensafe.static.project import Project
from tensafe.static.roots import run
from tensafe.static.source import Source
from tensafe.static.values import Frame, Memory


def unseen_writes(path: str, source: str, lines: set[int]) -> list[Site]:
    """The NumPy, ctypes and `out=` writes into memory that was seen on these lines.

    Writes into memory seen on most of the lines come first, and those in the order of the source.
    """
    try:
        seen, written = _observe(path, source, lines)
    except (SyntaxError, ValueError, RecursionError):
        return []
    ranked: dict[Site, int] = {}
    for site, storages in written:
        passed = max((len(seen[storage]) for storage in storages if storage in seen), default=0)
        if passed:
            ranked[site] = max(passed, ranked.get(site, 0))
    return sorted(ranked, key=lambda site: (-ranked[site], site.line, site.column))


def _observe(
    path: str, source: str, lines: set[int]
) -> tuple[dict[int, set[int]], list[tuple[Site, tuple[int, ...]]]]:
    """Which storages pass which of the lines, and which array writes there are into which storages."""
    seen: dict[int, set[int]] = defaultdict(set)
    written: list[tuple[Site, tuple[int, ...]]] = []
    with room():
        machine = Machine(Source(path, source), Project(path), _nobody)

    def touched(node: ast.AST, memory: Memory) -> None:
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        for line in lines:
            if first <= line <= last and machine.frame.source.path == path:
                for storage in memory.storages:
                    seen[storage].add(line)

    def unseen_write(node: ast.AST, frame: Frame, memory: Memory) -> None:
        if frame.source.path == path:
            written.append((frame.source.site(node, frame.label), memory.storages))

    machine.touched, machine.unseen_write = touched, unseen_write
    with room():
        run(machine)
    return seen, written


def _nobody(call: Call, history: History) -> None:
    """Takes a question and answers nothing."""
