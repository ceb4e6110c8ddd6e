"""The engine of this process and everybody who listens to it."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tensafe.collector import Collector
from tensafe.facts import Call, History, Kind, Moment
from tensafe.findings import CopyLine


@dataclass(frozen=True)
class How:
    """How the engine is to watch."""

    heal: bool = False
    watched: Sequence[str] = ()
    copies: bool = False
    depth: str = "writers"
    forks_followed: bool = False
    on_rank: Callable[[int], None] | None = None  # hears which rank this process becomes


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


class Listening:
    """One collector's stretch: it starts the engine and ends it, or joins the one that runs.

    To be started where torch is there.
    """

    def __init__(self, collector: Collector, how: How | None = None) -> None:
        self._collector = collector
        self._how = how or How()
        self._named: Any = None
        self._own: Any = None
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

    def _start_engine(self, *, hooks: bool = True) -> None:
        from tensafe.runtime.engine import Engine
        from tensafe.runtime.modes import unseen

        how = self._how
        with unseen():  # a fork can begin under a mode of the program
            engine = Engine(
                _naming_unseen_writers(_engine.ask),
                _engine.not_checked,
                heal=how.heal,
                forks_followed=how.forks_followed,
                on_rank=how.on_rank,
                exact=how.depth == "exact",
            )
            engine.start(hooks=hooks)
        _engine.running = self._own = engine
        if how.watched:
            from tensafe.watched import Named

            self._named = Named(how.watched)
            self._named.start()
        if how.copies:
            self._table = engine.copies_table()
            self._table.start()

    def start_over(self) -> None:
        """In a forked child: what the engine knows is the parent's to tell, so a new one begins here."""
        if self._own is None:
            return
        if self._named is not None:
            self._collector.not_checked(
                "--watch in child processes", "writes are told in the first process only"
            )
        hooks = self.abandon()
        self._how = replace(self._how, watched=())
        try:
            self._start_engine(hooks=hooks)
        except Exception as error:
            self._failed("a forked process", "could not start there", error)

    def abandon(self) -> bool:
        """In a forked child: the engine goes without a word; False where hooks of it had to stay."""
        if self._table is not None:
            self._table.stop()
        if self._named is not None:
            self._named.abandon()
        left = self._own is None or self._own.abandon()
        _engine.running = self._own = self._table = self._named = None
        return left

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
