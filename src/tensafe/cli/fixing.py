"""Applies the fixes of a check to its files, or shows what they would change."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from tensafe.checking.documents import Document, opened
from tensafe.findings import Finding, Record
from tensafe.findings.cells import split_cell
from tensafe.findings.source import split_lines
from tensafe.fixes import FixResult, apply, planned, until_still
from tensafe.report.characters import printable
from tensafe.report.places import shown_path
from tensafe.report.terminal import write_text
from tensafe.report.write import write_whole

LookAgain = Callable[[str, str], Sequence[Finding]]
"""`look(text, path)`: the findings in a text that was fixed."""
Open = Callable[[str], Document | None]


class Fixing:
    """Every file's text before and after; nothing is written until `write`."""

    def __init__(self, record: Record, look: LookAgain, unsafe: bool, open_: Open = opened) -> None:
        self._files = [
            (document, _fixed(document, findings, look, unsafe))
            for document, findings in _with_fixes(record.findings, open_)
        ]

    def write(self) -> bool:
        """Write the changed files, each whole with its encoding; whether there were any."""
        changed = [(document, result) for document, result in self._files if result.text != document.text]
        for document, result in changed:
            write_whole(Path(document.path), document.encoded(result.text))
        return bool(changed)

    def contents(self) -> bytes | None:
        """What the one file becomes; None when there is nothing to fix."""
        return next((document.encoded(result.text) for document, result in self._files), None)

    def show_difference(self, stream: TextIO) -> int:
        """Print a unified diff; 1 when there is one."""
        shown = False
        root = os.getcwd()
        for document, result in self._files:
            for path, before, after in document.differences(result.text):
                for line in _unified(before, after, printable(shown_path(path, root))):
                    write_text(line, stream)
                    shown = True
        return int(shown)

    def hint(self) -> str:
        """`3 fixed in 2 files`."""
        number = sum(result.applied for _, result in self._files)
        files = sum(result.applied > 0 for _, result in self._files)
        return f"{number} fixed in {files} file{'s' * (files != 1)}" if number else "nothing fixed"


def count_fixable(record: Record, open_: Open = opened) -> tuple[int, int]:
    """How many findings have a safe fix, and how many an unsafe one, that can be carried out."""
    safe = unsafe = 0
    for document, some in _with_fixes(record.findings, open_):
        own = [document.own(finding) for finding in some]
        alone, both = (apply(document.text, own, unsafe=unsafe_too) for unsafe_too in (False, True))
        safe += alone.applied
        unsafe += both.applied - alone.applied
    return safe, unsafe


def fixable(findings: Iterable[Finding], open_: Open = opened) -> list[Finding]:
    """The findings with a fix, safe or unsafe, that can be carried out."""
    found = []
    for document, some in _with_fixes(findings, open_):
        own = {document.own(finding): finding for finding in some}
        found += [own[plan.finding] for plan in planned(document.text, own)]
    return found


def _with_fixes(findings: Iterable[Finding], open_: Open) -> Iterator[tuple[Document, list[Finding]]]:
    """Each file that has something to fix, and its findings."""
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.fix:
            by_path.setdefault(split_cell(finding.fix.action.site.path)[0], []).append(finding)
    for path, some in by_path.items():
        document = open_(path)
        if document is not None:  # else it is gone since it was checked
            yield document, some


def _fixed(document: Document, findings: list[Finding], look: LookAgain, unsafe: bool) -> FixResult:
    def again(text: str) -> Sequence[Finding]:
        try:
            return [one for one in look(text, document.path) if _is_of(document, one)]
        except Exception:  # the check that follows the fixes says so; the fixes so far are good
            return []

    return until_still(document.text, [document.own(finding) for finding in findings], again, unsafe)


def _is_of(document: Document, finding: Finding) -> bool:
    """Whether the fix of a finding changes the document: one in a file that it calls is that file's."""
    return finding.fix is not None and split_cell(finding.fix.action.site.path)[0] == document.path


def _unified(before: str, after: str, name: str) -> Iterator[str]:
    old, new = split_lines(before), split_lines(after)
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line[-1:] in "\r\n" else f"{line}\n\\ No newline at end of file\n"
