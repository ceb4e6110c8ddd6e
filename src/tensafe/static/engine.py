"""The static engine's door: source text in, moments for the rules out."""

from __future__ import annotations

import gc
import itertools
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
FILES_BETWEEN_COLLECTIONS = 8
FILES_BETWEEN_FULL_COLLECTIONS = 512
_ROOMS = itertools.count(1)


def examine(path: str, text: str, ask: Ask, consulted: set[str] | None = None) -> int:
    """Interpret one file and ask wherever a rule may care; raises SyntaxError on text that is no Python.

    Returns how many functions were too large to be followed to their end; the paths of the other files on
    which the answers depend are put into `consulted`.
    """
    if not is_relevant(text):
        compile(text, path, "exec", dont_inherit=True, flags=0x400)
        return 0
    with room():
        return _interpret(Machine(Source(path, text), Project(path), ask), consulted)


def _interpret(machine: Machine, consulted: set[str] | None) -> int:
    """Run the machine and take it apart, so that nothing is left for a collection of cycles to walk over."""
    try:
        run(machine)
        if consulted is not None:
            consulted |= machine.project.consulted
        return machine.gave_up
    finally:
        for scope in (machine.frame.scope, *machine.project.scopes.values()):
            scope.clear()  # functions hold the scope that holds them
        vars(machine).clear()


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
        else:  # whoever checks many files has switched it off
            _collect(next(_ROOMS))


def _collect(number: int) -> None:
    """What the last files left behind, and seldom everything: a walk over all that lives costs the most."""
    if number % FILES_BETWEEN_COLLECTIONS == 0:
        gc.collect(2 if number % FILES_BETWEEN_FULL_COLLECTIONS == 0 else 0)
