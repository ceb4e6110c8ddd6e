"""A baseline: the findings that a project has decided to live with, told apart by what does not move."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import NamedTuple

from tensafe.errors import TensafeError
from tensafe.findings import Finding
from tensafe.findings.cells import split_cell

VERSION = 1


class Fingerprint(NamedTuple):
    """What stays the same when lines move: rule, file, function, and the line without its spacing."""

    path: str
    rule: str
    function: str
    line: str


ReadLine = Callable[[str, int], str]


@dataclass(frozen=True)
class Compared:
    """Findings that are not in the baseline, how many are, and what of it is no longer found."""

    new: tuple[Finding, ...]
    known: int
    gone: tuple[Fingerprint, ...]


class Baseline:
    """How many findings of each fingerprint are known; paths are read from the folder of the file."""

    def __init__(self, folder: Path, counts: Counter[Fingerprint]) -> None:
        self._folder = folder
        self._counts = counts

    def compare(
        self, findings: Iterable[Finding], read_line: ReadLine, checked: Sequence[Path], codes: Iterable[str]
    ) -> Compared:
        """Split findings into new and known; `gone` is said of checked or removed files and asked rules."""
        left = self._counts.copy()
        new, known = [], 0
        for finding in findings:
            mark = fingerprint(finding, read_line, self._folder)
            times = min(finding.count, left[mark])
            left[mark] -= times
            known += times
            if times < finding.count:
                new.append(replace(finding, count=finding.count - times))
        looked = {_inside(str(path), self._folder) for path in checked}
        asked = set(codes)
        gone = [
            mark
            for mark, times in left.items()
            if times > 0
            and mark.rule in asked
            and (mark.path in looked or not os.path.exists(self._folder / mark.path))
        ]
        return Compared(tuple(new), known, tuple(gone))


def read(path: Path) -> Baseline:
    """Read a baseline; raises TensafeError, which says how to write one where there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TensafeError(f"no baseline {path}: add --write-baseline to write it") from None
    except (OSError, UnicodeError) as error:
        raise TensafeError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        data = json.loads(text)
        if data["tool"] != "tensafe" or data["version"] != VERSION:
            raise ValueError
        counts: Counter[Fingerprint] = Counter()
        for item in data["baseline"]:
            mark = Fingerprint(*(str(item[name]) for name in Fingerprint._fields))
            counts[mark] += _positive(item["count"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise TensafeError(
            f"{path} is not a baseline of tensafe: write it anew with --write-baseline"
        ) from None
    return Baseline(path.absolute().parent, counts)


def _positive(count: object) -> int:
    if not isinstance(count, int) or count < 1:
        raise ValueError
    return count


def written(findings: Iterable[Finding], read_line: ReadLine, path: Path) -> str:
    """The text of a baseline that knows these findings; sorted, so that its changes can be read."""
    counts: Counter[Fingerprint] = Counter()
    for finding in findings:
        counts[fingerprint(finding, read_line, path.absolute().parent)] += finding.count
    items = [{**mark._asdict(), "count": counts[mark]} for mark in sorted(counts)]
    return json.dumps({"tool": "tensafe", "version": VERSION, "baseline": items}, indent=1) + "\n"


def fingerprint(finding: Finding, read_line: ReadLine, folder: Path) -> Fingerprint:
    """What the finding is told apart by."""
    site = finding.at
    line = " ".join(read_line(site.path, site.line).split())
    path, _ = split_cell(site.path)
    return Fingerprint(_inside(path, folder), finding.code, site.function, line)


def _inside(path: str, folder: Path) -> str:
    try:
        return PurePath(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return PurePath(path).as_posix()
