"""The watching of a trainer's training: begun, ended and told at the hooks that a trainer offers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensafe.errors import TensafeError
from tensafe.findings import Finding, Record, Severity, to_json
from tensafe.guards import Names, Watching, watching
from tensafe.integrations.ranks import of_all_ranks, rank
from tensafe.report import text
from tensafe.report.style import plain
from tensafe.report.write import refuse_unwritable, write_whole

Tell = Callable[[str], object]


class WatchedTraining:
    """What a watching callback wants, and what was seen in its last training.

    It can be copied and pickled; the copy has the wishes and the record, and watches nothing yet.
    """

    def __init__(
        self,
        *,
        steps: int | None,
        select: Names,
        ignore: Names,
        strict: bool,
        tell: Tell | None,
        output: str | Path | None,
    ) -> None:
        if steps is not None and (type(steps) is not int or steps < 1):
            raise TensafeError(f"steps={steps!r}: it is how many steps to watch, or None for all of them")
        watching(select=select, ignore=ignore)  # refuses unknown rules now, not when the training begins
        self._select, self._ignore = select, ignore
        self._steps = steps
        self._strict = strict
        self._tell_text = tell
        self._output = None if output is None else Path(output).absolute()
        self._seen: Watching | None = None
        self._stepped = 0
        self._open = False
        self.record: Record | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_seen": None, "_open": False}

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.record.findings if self.record is not None else ()

    def begin(self) -> None:
        """The engine starts; one that an earlier training left behind ends.

        A file that cannot be written is refused now: at the end it could cost the training.
        """
        self._stop(None)
        if self._output is not None and rank() == 0:
            refuse_unwritable(self._output)
        self._stepped, self.record, self._open = 0, None, True
        self._seen = watching(select=self._select, ignore=self._ignore)
        self._seen.__enter__()

    def stepped(self) -> None:
        """A step of the optimizer is done; after the last that was asked for, the engine ends."""
        self._stepped += 1
        if self._steps is not None and self._stepped >= self._steps:
            self._stop(None)

    def finish(self) -> None:
        """The training ended well: rank 0 tells what all ranks saw; raises under `strict`."""
        if not self._open:
            return
        self._stop(None)
        self._open = False
        assert self.record is not None
        self.record = of_all_ranks(self.record)
        if rank() == 0:
            self._tell(self.record)
        if self._strict and _loud(self.record):
            raise TensafeError(_counted(self.record))

    def fail(self, error: BaseException) -> None:
        """The training ended by an error: this process tells what it saw, as the others may hang."""
        if not self._open:
            return
        self._stop(error)
        self._open = False
        assert self.record is not None
        if rank() == 0 or _loud(self.record):
            self._tell(self.record)

    def leave(self) -> None:
        """Whatever ended the training, the engine ends now; nothing is told."""
        self._stop(None)
        self._open = False

    def _stop(self, error: BaseException | None) -> None:
        if self._seen is None:
            return
        seen, self._seen = self._seen, None
        seen.__exit__(*((type(error), error, error.__traceback__) if error is not None else (None,) * 3))
        self.record = seen.record

    def _tell(self, record: Record) -> None:
        words = plain(text.render(record, text.View())).rstrip()
        words = words or f"tensafe: {text.nothing_found(record)} in the training"
        if self._tell_text is not None:
            self._tell_text(words)
        elif sys.stderr is not None:
            print(words, file=sys.stderr, flush=True)
        if self._output is not None:
            try:
                write_whole(self._output, to_json(record).encode())
            except TensafeError as failure:  # the training is done, or has an error of its own
                if sys.stderr is not None:
                    print(f"tensafe: {failure}", file=sys.stderr, flush=True)


class WatchesTraining:
    """What the watching callbacks of all trainers have in common."""

    def __init__(
        self,
        *,
        steps: int | None = None,
        select: Names = (),
        ignore: Names = (),
        strict: bool = False,
        tell: Tell | None = None,
        output: str | Path | None = None,
    ) -> None:
        self._training = WatchedTraining(
            steps=steps, select=select, ignore=ignore, strict=strict, tell=tell, output=output
        )
        self._is_made()

    def _is_made(self) -> None:
        """Called for each new callback, after its construction."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of the last training, each with `.code`, `.name`, `.severity`, `.message`, `.location`."""
        return self._training.findings

    @property
    def record(self) -> Record | None:
        """The record of the last training; None before its end."""
        return self._training.record


def _loud(record: Record) -> list[Finding]:
    return [finding for finding in record.findings if finding.severity is not Severity.NOTICE]


def _counted(record: Record) -> str:
    """For an error of one line: which rules found something, and where first."""
    loud = _loud(record)
    names = ", ".join(dict.fromkeys(finding.name for finding in loud))
    place = loud[0].location
    return f"tensafe found {names} in the training, first at {place.path}:{place.line}; the report has it all"
