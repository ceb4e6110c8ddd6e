"""The static engine's door: source text in, moments for the rules out."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tensafe.static import tables
from tensafe.static.machine import Ask, Machine
from tensafe.static.project import Project
from tensafe.static.roots import run
from tensafe.static.source import Source, is_relevant

tables.fill()
DEEPEST_RECURSION = 6_000


def examine(path: str, text: str, ask: Ask) -> int:
    """Interpret one file and ask wherever a rule may care; raises SyntaxError on text that is no Python.

    Returns how many functions were too large to be followed to their end.
    """
    if not is_relevant(text):
        compile(text, path, "exec", dont_inherit=True, flags=0x400)
        return 0
    with room():
        machine = Machine(Source(path, text), Project(path), ask)
        run(machine)
        return machine.gave_up


@contextmanager
def room() -> Iterator[None]:
    """Room for deep trees, and no looking for cycles: trees and values die by their reference counts."""
    limit, collecting = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(limit, DEEPEST_RECURSION))
    gc.disable()  # it would double the time
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        if collecting:
            gc.enable()
