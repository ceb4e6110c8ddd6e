"""Brings the rules and the runtime engine together: one watched program, one record."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence

from tensafe.collector import Collector, Healing
from tensafe.family import names
from tensafe.family.home import Home
from tensafe.family.process import Process
from tensafe.family.settings import Settings
from tensafe.findings import Finding, Record
from tensafe.listening import Listening
from tensafe.rules._loader import Rule
from tensafe.runtime import program as programs


def run_program(
    target: str,
    arguments: Sequence[str],
    *,
    module: bool,
    rules: Sequence[Rule],
    tell: Callable[[Record], None],
    tell_now: Callable[[Finding], None],
    keep: Callable[[Record], None] | None = None,
    heal: bool = False,
    watched: Sequence[str] = (),
    copies: bool = False,
    depth: str = "writers",
) -> int:
    """Run a script or module under the engine and return its exit status; `tell` gets the record at the end.

    `tell_now` gets a finding at once when the program is about to stop on it. Raises `TensafeError` before
    anything runs when there is no such program. `keep` gets the record at every new finding. `heal` gives
    backward the values that tensors had when they were saved, and goes on. Writes into `watched`, names of
    the program, are told at the writing line. With `copies` the record lists all copies by line. At the
    `depth` "exact" writes by C++ get their line too.
    """
    program = programs.read(target, arguments, module=module)
    collector = Healing(rules, tell_now) if heal else Collector(rules, tell_now)
    settings = Settings.of(rules, heal, copies, depth)
    process = Process(program.name, collector, settings, Home(), tell, watched)
    names.rank_from_environment()
    process.begin(keep)
    status = programs.execute(program, process.ended_by)
    process.end(status)
    return status


def watch_text(text: str, path: str, rules: Sequence[Rule]) -> Record:
    """Run source text in this process under the engine; an exception of it is `summary["raised"]`."""
    collector = Collector(rules)
    listening = Listening(collector)
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    summary: dict[str, float | int | str] = {}
    programs.WhenLoaded("torch", listening.start)
    namespace = {"__name__": "__main__", "__file__": path}
    try:
        exec(compile(text, path, "exec", dont_inherit=True), namespace)
    except Exception as error:
        listening.ended_by(error)
        summary["raised"] = f"{type(error).__name__}: {error}"
    finally:
        listening.stop()
    return collector.record("run", summary)
