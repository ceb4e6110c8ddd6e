"""Where a record goes: to a stream as text, or whole into the file of `--output`."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tensafe.cli.options import refuse_terminal
from tensafe.errors import TensafeError
from tensafe.findings import Finding, Record, Severity
from tensafe.report import formats, terminal, text, write
from tensafe.report.characters import loggable
from tensafe.report.places import shown_path
from tensafe.report.sources import Sources
from tensafe.report.text import View
from tensafe.rules._loader import Rule

if TYPE_CHECKING:
    from tensafe.report.sarif import RuleText


class Outlet:
    """Knows format, destination and folder from the start: a program that changes folder moves nothing."""

    def __init__(
        self,
        chosen: Namespace,
        stream: TextIO | None,
        rules: Iterable[Rule] = (),
        since: float | None = None,
        inputs: Iterable[Path] = (),
        what: str = "",
    ) -> None:
        self.format: str = chosen.format
        self.stream: TextIO = stream or io.StringIO()  # None when it was closed before we began
        self._notices: bool = chosen.notices
        self._root = _folder()
        self._render = formats.renderer(chosen.format, _rule_texts(rules) if chosen.format == "sarif" else ())
        self._since = since
        self.sources = Sources(since)
        self._output = Path(chosen.output).absolute() if chosen.output else None
        self._told: set[Finding] = set()
        if self.format == "html":
            refuse_terminal(chosen.output, stream)
        if self._output:
            write.refuse_overwriting(self._output, inputs, what)
            write.refuse_unwritable(self._output)

    def tell_now(self, finding: Finding) -> None:
        """Show one finding at once, unless the stream is kept for another format."""
        if self.format == "text" or self._output:
            terminal.write_lines([*text.render_finding(finding, self._view()), ()], self.stream)
            self._told.add(text.one(finding))

    def tell(self, record: Record, hint: str = "") -> None:
        """Tell the whole record, once."""
        view = self._view(hint)
        if self._output:
            self._write_file(record, self._output)
            self._say_where(record, view)
        elif self.format == "text":
            terminal.write_lines(text.render(record, view), self.stream)
        else:
            terminal.write_text(self._render(record, self._with_changes(view, record)), self.stream)

    def write(self, whole: str) -> None:
        """Put a text where the record would go."""
        if self._output:
            write.write_whole(self._output, whole.encode("utf-8", "backslashreplace"))
        else:
            terminal.write_text(whole, self.stream)

    def forget_sources(self) -> None:
        """Files were changed: read them again."""
        self.sources = Sources(self._since)

    def keep(self, record: Record) -> None:
        """Write what is known so far into the file, if there is one and it can be written again.

        What fixes would change is left for the end: to plan them takes longer than to write.
        """
        if self._output and not write.is_special(self._output):
            self._write_file(record, self._output, fixes=False)

    def say_nothing_found(self, record: Record, hint: str = "") -> None:
        """The one line of a clean record."""
        if self.format == "text" and not self._output and not record.findings and not record.not_checked:
            self.say(text.closing(record, self._view(hint)))

    def _write_file(self, record: Record, path: Path, fixes: bool = True) -> None:
        view = View(root=self._root, sources=self.sources, notices=self._notices)
        whole = self._render(record, self._with_changes(view, record) if fixes else view)
        write.write_whole(path, whole.encode("utf-8", "backslashreplace"))

    def _say_where(self, record: Record, view: View) -> None:
        if record.findings and self._output:
            name = shown_path(str(self._output), self._root)
            told = f"{text.closing(record, view)}; written to {name}"
            self.say(told)

    def say(self, words: str) -> None:
        """One line that begins with our name."""
        terminal.write_lines([(("tensafe: ", "strong"), (words, ""))], self.stream)

    def _view(self, hint: str = "") -> View:
        width = terminal.width_of(self.stream)
        return View(self._root, self.sources, width, self._notices, self._told, hint)

    def _with_changes(self, view: View, record: Record) -> View:
        if self.format not in ("sarif", "html"):
            return view
        from tensafe.cli.changes import changes_of

        return replace(view, changes=changes_of(record, self.sources))


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed; a program given by its full path still runs
        return os.sep


def _rule_texts(rules: Iterable[Rule]) -> list[RuleText]:
    from tensafe.report.sarif import RuleText
    from tensafe.rules._pages import markdown

    return [RuleText(r.code, r.name, r.page.headline, markdown(r), r.severity) for r in rules]


def has_findings(record: Record | None) -> bool:
    """Whether there are errors or warnings; notices do not count."""
    return record is not None and any(finding.severity is not Severity.NOTICE for finding in record.findings)


def complain(error: TensafeError) -> None:
    """One line on standard error, for what goes wrong when the work is already done."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(f"tensafe: {loggable(str(error))}", file=sys.stderr, flush=True)
        terminal.settle(sys.stderr)
