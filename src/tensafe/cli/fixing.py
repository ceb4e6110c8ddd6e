"""Applies the fixes of a check to its files, or shows what they would change."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from tensafe.findings import Finding, Record
from tensafe.findings.source import decode, split_lines
from tensafe.fixes import FixResult, apply, until_still
from tensafe.report.places import shown_path
from tensafe.report.terminal import write_text
from tensafe.report.write import write_whole
from tensafe.rules._loader import Rule


class Fixing:
    """Every file's text before and after; nothing is written until `write`."""

    def __init__(self, record: Record, rules: Sequence[Rule], unsafe: bool) -> None:
        self._files = [
            (path, before, encoding, _fixed(path, before, findings, rules, unsafe))
            for path, before, encoding, findings in _with_fixes(record)
        ]

    def write(self) -> bool:
        """Write the changed files, each whole with its encoding; whether there were any."""
        changed = [item for item in self._files if item[3].text != item[1]]
        for path, _, encoding, result in changed:
            write_whole(Path(path), result.text.encode(encoding))
        return bool(changed)

    def show_difference(self, stream: TextIO) -> int:
        """Print a unified diff; 1 when there is one."""
        shown = False
        root = os.getcwd()
        for path, before, _, result in self._files:
            name = shown_path(path, root)
            for line in _unified(before, result.text, name):
                write_text(line, stream)
                shown = True
        return int(shown)

    def hint(self) -> str:
        """`3 fixed in 2 files`."""
        number = sum(result.applied for *_, result in self._files)
        files = sum(result.applied > 0 for *_, result in self._files)
        return f"{number} fixed in {files} file{'s' * (files != 1)}" if number else "nothing fixed"


def count_fixable(record: Record) -> tuple[int, int]:
    """How many findings have a safe fix, and how many an unsafe one, that can be carried out."""
    safe = unsafe = 0
    for _, text, _, findings in _with_fixes(record):
        some, all_of_them = apply(text, findings, unsafe=False), apply(text, findings, unsafe=True)
        safe += some.applied
        unsafe += all_of_them.applied - some.applied
    return safe, unsafe


def _with_fixes(record: Record) -> Iterator[tuple[str, str, str, list[Finding]]]:
    """Path, text, encoding and findings of each file that has something to fix."""
    by_path: dict[str, list[Finding]] = {}
    for finding in record.findings:
        if finding.fix:
            by_path.setdefault(finding.fix.action.site.path, []).append(finding)
    for path, findings in by_path.items():
        try:
            text, encoding = decode(Path(path).read_bytes())
        except (OSError, ValueError):
            continue  # gone since it was checked
        yield path, text, encoding, findings


def _fixed(path: str, before: str, findings: list[Finding], rules: Sequence[Rule], unsafe: bool) -> FixResult:
    from tensafe.check import check_text

    def look(text: str) -> Sequence[Finding]:
        try:
            return check_text(text, path, rules)
        except Exception:  # the check that follows the fixes says so; the fixes so far are good
            return []

    return until_still(before, findings, look, unsafe)


def _unified(before: str, after: str, name: str) -> Iterator[str]:
    old, new = split_lines(before), split_lines(after)
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line[-1:] in "\r\n" else f"{line}\n\\ No newline at end of file\n"
