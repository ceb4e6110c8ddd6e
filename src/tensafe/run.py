"""Brings the rules and the runtime engine together: one watched program, one record."""

from __future__ import annotations

import linecache
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tensafe.collector import Collector
from tensafe.facts import Call, History, Kind, Moment
from tensafe.findings import CopyLine, Finding, Record
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
    heal: bool = False,
    watched: Sequence[str] = (),
    copies: bool = False,
) -> int:
    """Run a script or module under the engine and return its exit status; `tell` gets the record at the end.

    `tell_now` gets a finding at once when the program is about to stop on it. Raises `TensafeError` before
    anything runs when there is no such program. `heal` gives backward the values that tensors had when they
    were saved, and goes on. Writes into `watched`, names of the program, are told at the writing line.
    With `copies` the record lists all copies by line.
    """
    program = programs.read(target, arguments, module=module)
    collector = _Healing(rules, tell_now) if heal else Collector(rules, tell_now)
    listening = listen(collector, heal=heal, watched=watched, copies=copies)
    waiting = programs.WhenTorchLoads(listening.start)
    begun, process = time.perf_counter(), os.getpid()
    status = programs.execute(program, listening.ended_by)
    if os.getpid() != process:
        return status
    waiting.remove()
    listening.stop()
    if not listening.started:
        collector.not_checked(program.name, "it did not import torch")
    seconds = round(time.perf_counter() - begun, 3)
    record = collector.record("run", {"seconds": seconds, "program": program.name, "exit_status": status})
    tell(replace(record, copies=listening.copies if copies else None))
    return status


def watch_text(text: str, path: str, rules: Sequence[Rule]) -> Record:
    """Run source text in this process under the engine; an exception of it is `summary["raised"]`."""
    collector = Collector(rules)
    listening = listen(collector)
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    summary: dict[str, float | int | str] = {}
    programs.WhenTorchLoads(listening.start)
    namespace = {"__name__": "__main__", "__file__": path}
    try:
        exec(compile(text, path, "exec", dont_inherit=True), namespace)
    except Exception as error:
        listening.ended_by(error)
        summary["raised"] = f"{type(error).__name__}: {error}"
    finally:
        listening.stop()
    return collector.record("run", summary)


class _Engine:
    """The engine of this process and everybody who listens to it."""

    def __init__(self) -> None:
        self.running: Any = None
        self.collectors: list[Collector] = []

    def ask(self, call: Call, history: History) -> None:
        for collector in list(self.collectors):
            collector.ask(call, history)

    def not_checked(self, what: str, why: str) -> None:
        for collector in self.collectors:
            collector.not_checked(what, why)


_engine = _Engine()


def listen(
    collector: Collector, *, heal: bool = False, watched: Sequence[str] = (), copies: bool = False
) -> Listening:
    """A collector for the engine of this process; to be started where torch is there."""
    return Listening(collector, heal, watched, copies)


class Listening:
    """One collector's stretch: it starts the engine and ends it, or joins the one that runs."""

    def __init__(self, collector: Collector, heal: bool, watched: Sequence[str], copies: bool) -> None:
        self._collector = collector
        self._heal = heal
        self._watched = watched
        self._named: Any = None
        self._own: Any = None
        self._wants_copies = copies
        self._table: Any = None
        self.copies: tuple[CopyLine, ...] = ()
        self.started = False

    def start(self) -> None:
        """If the engine cannot start, the program goes on unwatched."""
        _engine.collectors.append(self._collector)
        try:
            if _engine.running is None:
                self._start_engine()
            self.started = True
        except Exception as error:
            _engine.collectors.remove(self._collector)
            self._failed("the whole program", "could not start", error)

    def _start_engine(self) -> None:
        from tensafe.runtime.engine import Engine

        engine = Engine(_naming_unseen_writers(_engine.ask), _engine.not_checked, heal=self._heal)
        engine.start()
        _engine.running = self._own = engine
        if self._watched:
            from tensafe.watched import Named

            self._named = Named(self._watched)
            self._named.start()
        if self._wants_copies:
            self._table = engine.copies_table()
            self._table.start()

    def ended_by(self, error: BaseException) -> None:
        """The stretch ends by an exception that nobody caught."""
        if self._own is not None:
            self._own.ended_by(error)

    def stop(self) -> None:
        """End the engine if it is ours; else listen no more."""
        collectors = _engine.collectors
        try:
            if self._table is not None:
                self.copies = _copy_lines(self._table.stop())
            if self._named is not None:
                self._named.stop(self._collector.not_checked)
            if self._own is not None:
                self._own.stop()
        except Exception as error:
            self._failed("the end of the program", "failed there", error)
        if self._own is not None:
            for other in collectors:
                if other is not self._collector:
                    other.not_checked("what came later", "the engine around it ended before")
            _engine.running, self._own = None, None
            collectors.clear()
        elif self._collector in collectors:
            collectors.remove(self._collector)
            self._collector.not_checked(
                "what only the end of a run shows", "the engine around it goes on, and tells it at its end"
            )

    def _failed(self, what: str, how: str, error: Exception) -> None:
        self._collector.not_checked(what, f"tensafe {how} ({type(error).__name__}: {error})")


def _copy_lines(rows: Sequence[Any]) -> tuple[CopyLine, ...]:
    from tensafe.runtime.costs.copies_table import needed

    return tuple(
        CopyLine(site, tally.op, tally.times, tally.nbytes, not tally.explicit, needed(tally))
        for tally, site in rows
    )


class _Healing(Collector):
    """The collector of a healed program: backward used the right values, and the program goes on."""

    def ask(self, call: Call, history: History) -> None:
        self._healed = call.kind is Kind.BACKWARD
        super().ask(call, history)

    def _add(self, finding: Finding, stops: bool) -> None:
        if self._healed:
            healed = f"{finding.message} (healed: this run used the values from before the write)"
            finding, stops = replace(finding, message=healed), False
        super()._add(finding, stops)


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
    from tensafe.static.suspects import unseen_writes

    known = (Kind.EXPORTED,) if any(moment.kind is Kind.EXPORTED for moment in trail) else (Kind.SAVED,)
    sites = [moment.site for moment in trail if moment.kind in known and moment.site is not None]
    for path in dict.fromkeys(site.path for site in sites):
        lines = {site.line for site in sites if site.path == path}
        source = "".join(linecache.getlines(path))
        for site in unseen_writes(path, source, lines):
            return replace(write, site=site, note="found in the source")
    return None
