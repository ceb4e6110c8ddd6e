"""`watching()`: the running engine as a context manager, in scripts and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from tensafe.collector import Collector
from tensafe.errors import TensafeError
from tensafe.findings import Finding, NotChecked, Record, draw_with, to_json
from tensafe.listening import Listening
from tensafe.report import text
from tensafe.report.style import plain
from tensafe.rules._loader import select as select_rules

Names = str | Sequence[str]


def watching(*, select: Names = (), ignore: Names = ()) -> Watching:
    """Watch what runs inside the `with`, by the rules that `tensafe run` uses; `seen.findings` afterwards.

    `select` and `ignore` are names, codes or code prefixes of rules. Inside another `watching()`, or under
    `tensafe run`, the engine that already runs tells both; what only its end can show it tells alone.

    Examples:
        >>> with tensafe.watching(select="TS2") as seen:
        ...     train(model)
        >>> print(seen)
    """
    rules = select_rules(listed(select), listed(ignore))
    if not rules:
        raise TensafeError("select and ignore leave no rule; `tensafe rules` lists them")
    return Watching(Collector(rules))


class Watching:
    """One watched stretch and what was seen in it; prints as `tensafe run` does, renders in notebooks."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._listening = Listening(collector)
        self._entered = False

    def __enter__(self) -> Watching:
        if self._entered:
            raise TensafeError("a watching() can be entered once: make another")
        self._entered = True
        self._listening.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._listening.ended_by(error)
        self._listening.stop()

    @property
    def record(self) -> Record:
        """Everything seen so far, as `tensafe run` would write it."""
        return self._collector.record("run", {})

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Each with `.code`, `.name`, `.severity`, `.message`, `.location`."""
        return self.record.findings

    @property
    def not_checked(self) -> tuple[NotChecked, ...]:
        """What could not be watched, each with `.what` and `.why`."""
        return self.record.not_checked

    def to_json(self) -> str:
        """The record as a JSON text."""
        return to_json(self.record)

    def __repr__(self) -> str:
        record = self.record
        return plain(text.render(record, text.View())).rstrip() or f"tensafe: {text.nothing_found(record)}"

    def _repr_html_(self) -> str:
        from tensafe.report.html import record_fragment

        return record_fragment(self.record, text.View())


def _drawn(finding: Finding) -> str:
    from tensafe.report.html import finding_fragment

    return finding_fragment(finding, text.View())


draw_with(_drawn)


def listed(names: Names) -> list[str]:
    listed = names.split(",") if isinstance(names, str) else list(names)
    return [name.strip() for name in listed if name.strip()]
