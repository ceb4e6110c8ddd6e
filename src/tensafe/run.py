"""Brings the rules and the runtime engine together: one watched program, one record."""

from __future__ import annotations

import linecache
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from tensafe.collector import Collector
from tensafe.facts import Call, History, Kind, Moment
from tensafe.findings import Finding, Record
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
) -> int:
    """Run a script or module under the engine and return its exit status; `tell` gets the record at the end.

    `tell_now` gets a finding at once when the program is about to stop on it. Raises `TensafeError` before
    anything runs when there is no such program.
    """
    program = programs.read(target, arguments, module=module)
    collector = Collector(rules, tell_now)
    engines: list[Any] = []
    waiting = programs.WhenTorchLoads(lambda: _start_engine(collector, engines))
    begun, process = time.perf_counter(), os.getpid()
    status = programs.execute(program)
    if os.getpid() != process:
        return status
    waiting.remove()
    _stop(engines, collector)
    if not engines:
        collector.not_checked(program.name, "it did not import torch")
    seconds = round(time.perf_counter() - begun, 3)
    tell(collector.record("run", {"seconds": seconds, "program": program.name, "exit_status": status}))
    return status


def watch_text(text: str, path: str, rules: Sequence[Rule]) -> Record:
    """Run source text in this process under the engine; an exception of it is `summary["raised"]`."""
    collector = Collector(rules)
    engines: list[Any] = []
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    summary: dict[str, float | int | str] = {}
    programs.WhenTorchLoads(lambda: _start_engine(collector, engines))
    namespace = {"__name__": "__main__", "__file__": path}
    try:
        exec(compile(text, path, "exec", dont_inherit=True), namespace)
    except Exception as error:
        summary["raised"] = f"{type(error).__name__}: {error}"
    finally:
        _stop(engines, collector)
    return collector.record("run", summary)


def _start_engine(collector: Collector, engines: list[Any]) -> None:
    """Called when torch is there; if the engine cannot start, the program goes on unwatched."""
    try:
        from tensafe.runtime.engine import Engine

        engine = Engine(_naming_unseen_writers(collector.ask), collector.not_checked)
        engine.start()
        engines.append(engine)
    except Exception as error:
        collector.not_checked(
            "the whole program", f"tensafe could not start ({type(error).__name__}: {error})"
        )


def _stop(engines: list[Any], collector: Collector) -> None:
    for engine in engines:
        try:
            engine.stop()
        except Exception as error:
            collector.not_checked(
                "the end of the program", f"tensafe failed there ({type(error).__name__}: {error})"
            )


def _naming_unseen_writers(ask: Callable[[Call, History], None]) -> Callable[[Call, History], None]:
    """Where the running engine saw no writer, ask the other one who writes into that memory."""

    def ask_with_names(call: Call, history: History) -> None:
        if call.kind is Kind.BACKWARD:
            saved = call.values["saved"]
            kept = saved.last(Kind.SAVED)
            write = history.last_write(saved.storages, since=kept) if kept else None
            if write is not None and write.site is None:
                named = _likely_writer(saved.trail, write)
                if named is not None:
                    history = _OneWrite(named)
        ask(call, history)

    return ask_with_names


class _OneWrite:
    """A history that holds a single write."""

    def __init__(self, write: Moment) -> None:
        self._write = write

    def last_write(self, storages: object, since: Moment) -> Moment | None:
        return self._write if self._write.order > since.order else None


def _likely_writer(trail: Sequence[Moment], write: Moment) -> Moment | None:
    from dataclasses import replace

    from tensafe.static.suspects import unseen_writes

    known = (Kind.EXPORTED,) if any(moment.kind is Kind.EXPORTED for moment in trail) else (Kind.SAVED,)
    sites = [moment.site for moment in trail if moment.kind in known and moment.site is not None]
    for path in dict.fromkeys(site.path for site in sites):
        lines = {site.line for site in sites if site.path == path}
        source = "".join(linecache.getlines(path))
        for site in unseen_writes(path, source, lines):
            return replace(write, site=site, note="found in the source")
    return None
