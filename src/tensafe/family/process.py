"""One process under the engine, from its start to its record: the program's first, or a child of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tensafe.collector import Collector
from tensafe.family import names
from tensafe.family.children import Children
from tensafe.family.home import Home, Sheet
from tensafe.family.keeping import Keeping
from tensafe.family.settings import Settings
from tensafe.family.signals import Signals
from tensafe.findings import Finding, Record, Told, merge
from tensafe.listening import How, Listening
from tensafe.runtime.program import WhenLoaded

Tell = Callable[[Record], None]


class Process:
    """What runs in this process; after a fork, the child's copy goes on as the child's own."""

    def __init__(
        self,
        program: str,
        collector: Collector,
        settings: Settings,
        home: Home,
        tell: Tell | None,
        watched: Sequence[str] = (),
    ) -> None:
        self._program = program
        self._collector = collector
        self._home = home
        self._tell = tell
        self._copies = settings.copies
        how = How(settings.heal, watched, settings.copies, settings.depth, True, names.joined)
        self._listening = Listening(collector, how)
        self._children = Children(self, home, settings, collector.not_checked)
        self._signals = Signals(self.end)
        self._keeping: Keeping | None = None
        self._sheet: Sheet | None = None
        self._called = "a child process"
        self._ended = False
        self._begun = time.perf_counter()

    def begin(self, keep: Tell | None = None, token: str = "") -> None:
        """Watch from the moment that torch is imported; a child, which has a token, tells its parent."""
        if token:
            self._write_home(token)
        else:
            self._signals.take()
        if keep is not None:
            self._keeping = Keeping(lambda: self._own_record(None), keep)
            self._collector.on_new = self._keep
        self._children.follow()
        self._waiting = WhenLoaded("torch", self._torch_loaded)

    def ended_by(self, error: BaseException) -> None:
        """The program ends by an exception that nobody caught."""
        self._listening.ended_by(error)

    def end(self, status: int | None) -> None:
        """Undo everything and tell; once, by whichever way the process ends first."""
        if not self._ended:
            self._ended = True
            self._end(status)

    def _end(self, status: int | None) -> None:
        self._collector.on_new = None
        self._waiting.remove()
        self._signals.give_back()
        self._children.leave()
        self._listening.stop()
        if self._sheet is not None:
            self._sheet.finish(self._own_record(status), names.name(self._called), names.rank())
        elif self._tell is not None:
            self._tell(self._gathered(status))
            self._home.remove()

    # --- as a child

    def forked(self, token: str) -> None:
        """Go on as the child: what was seen before the fork is the parent's to tell."""
        self._signals.give_back()
        self._collector.start_over()
        self._tell = self._keeping = self._sheet = None
        self._called = f"forked process {token.rpartition('-')[2]}"
        if token and not self._ended:
            self._write_home(token)
            self._listening.start_over()
        else:
            self._children.leave()
            self._listening.abandon()

    def renamed(self) -> None:
        if self._sheet is not None:
            self._sheet.note(name=names.name(self._called), rank=names.rank())

    def _write_home(self, token: str) -> None:
        self._sheet = self._home.sheet(token)
        self._sheet.note(name=names.name(self._called), rank=names.rank(), watched=self._listening.started)
        self._collector.on_new = self._found

    def _found(self, finding: Finding) -> None:
        if self._sheet is not None:
            self._sheet.found(finding, names.name(self._called), names.rank())

    # --- the record

    def _torch_loaded(self) -> None:
        self._listening.start()
        self._children.follow_launches()
        if self._sheet is not None:
            self._sheet.note(watched=True)
        if self._keeping is not None:
            self._keeping.write()

    def _keep(self, finding: Finding) -> None:
        if self._keeping is not None:
            self._keeping.write()

    def _own_record(self, status: int | None) -> Record:
        summary: dict[str, float | int | str] = {
            "seconds": round(time.perf_counter() - self._begun, 3),
            "program": self._program,
        }
        rank = names.rank()
        if rank is not None:
            summary["rank"] = rank
        if status is not None:
            summary["exit_status"] = status
        return self._collector.record("run", summary, self._listening.copies if self._copies else None)

    def _gathered(self, status: int | None) -> Record:
        told: list[Told] = []
        try:
            told, unknown = self._home.gather()
            for item in unknown:
                self._collector.not_checked(item.what, item.why)
        except Exception as error:
            why = f"what they wrote could not be read ({type(error).__name__}: {error})"
            self._collector.not_checked("child processes", why)
        if not self._listening.started and not told:
            self._collector.not_checked(self._program, "it did not import torch")
        own = Told(self._own_record(status), names.name(""), names.rank())
        return merge([own, *told])
