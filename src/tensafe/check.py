"""`tensafe check`: brings the rules and the static engine together, over many files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tensafe import __version__
from tensafe.errors import TensafeError
from tensafe.facts import Call, History
from tensafe.findings import Finding, NotChecked, Record
from tensafe.findings.source import split_lines
from tensafe.ops import words
from tensafe.rules._loader import Rule, by_name
from tensafe.static import examine
from tensafe.static.project import read

SKIPPED = words(
    """
    .git .hg .svn .venv venv .tox .nox __pycache__ node_modules build dist .mypy_cache .ruff_cache
    .pytest_cache .eggs .ipynb_checkpoints
    """
)
PYTHON = words(".py .pyw .pyi") | {""}
BYTES_WORTH_A_PROCESS = 400_000


def check_text(text: str, path: str, rules: Sequence[Rule]) -> list[Finding]:
    """The findings in one file's text, by line; raises SyntaxError when it is no Python."""
    return _look(text, path, rules)[0]


def _look(text: str, path: str, rules: Sequence[Rule]) -> tuple[list[Finding], int]:
    """The findings, and how many functions were too large to be followed to their end."""
    found: dict[tuple[str, str, int, int], Finding] = {}

    def ask(call: Call, history: History) -> None:
        for rule in rules:
            if call.kind in rule.asked_at:
                for finding in rule.judge(call, history):
                    _keep(found, finding)

    gave_up = examine(path, text, ask)
    lines = split_lines(text)
    kept = [finding for finding in found.values() if not _is_allowed(finding, lines, path)]
    kept.sort(key=lambda finding: (finding.at.path, finding.at.line, finding.at.column, finding.code))
    return kept, gave_up


def _keep(found: dict[tuple[str, str, int, int], Finding], finding: Finding) -> None:
    """One finding for each place: the graver, then the first."""
    key = (finding.code, finding.at.path, finding.at.line, finding.at.column)
    known = found.get(key)
    if known is None or _GRAVITY[finding.severity.value] > _GRAVITY[known.severity.value]:
        found[key] = finding


_GRAVITY = {"notice": 0, "warning": 1, "error": 2}


def _is_allowed(finding: Finding, lines: Sequence[str], path: str) -> bool:
    from tensafe.findings.allow import is_allowed

    def read_line(other: str, number: int) -> str:
        if other == path:
            return lines[number - 1] if 0 < number <= len(lines) else ""
        return _line_of(other, number)

    return bool(is_allowed(finding, read_line))


def _line_of(path: str, number: int) -> str:
    try:
        lines = split_lines(read(Path(path)))
    except (OSError, SyntaxError, UnicodeError):
        return ""
    return lines[number - 1] if 0 < number <= len(lines) else ""


def check_paths(
    paths: Sequence[Path],
    rules: Sequence[Rule],
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Record:
    """Check files and folders; findings by file and line, whatever the number of processes."""
    started = time.perf_counter()
    files = python_files(paths)
    names = [rule.code for rule in rules]
    findings: list[Finding] = []
    not_checked: list[NotChecked] = []
    lines = gave_up = 0
    for number, outcome in enumerate(_outcomes(files, names, jobs), 1):
        findings += outcome[0]
        not_checked += outcome[1]
        lines += outcome[2]
        gave_up += outcome[3]
        if progress is not None:
            progress(number, len(files))
    summary: dict[str, float | int | str] = {
        "files": len(files),
        "lines": lines,
        "functions_given_up": gave_up,
        "seconds": round(time.perf_counter() - started, 3),
    }
    return Record("check", _without_repeats(findings), tuple(not_checked), summary, __version__)


def _without_repeats(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """A fault in a shared helper is met from every file that calls it, and told once."""
    first: dict[tuple[str, str, int, int], Finding] = {}
    for finding in findings:
        first.setdefault((finding.code, finding.at.path, finding.at.line, finding.at.column), finding)
    return tuple(first.values())


def python_files(paths: Sequence[Path]) -> list[Path]:
    """The files to check, absolute, each once; raises TensafeError for a path that gives none."""
    found: dict[Path, None] = {}
    for path in paths:
        if os.path.isdir(path):
            inside = list(_walk(path))
            if not inside:
                raise TensafeError(f"no Python files in {path}")
            found.update(dict.fromkeys(inside))
        elif os.path.exists(path):
            found[Path(os.path.abspath(path))] = None
        else:
            raise TensafeError(f"no such file or folder: {path}")
    return list(found)


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(os.path.abspath(folder)):
        folders[:] = sorted(
            name for name in folders if name not in SKIPPED and not name.endswith(".egg-info")
        )
        for name in sorted(names):
            if name.endswith(".py") and os.path.isfile(os.path.join(root, name)):
                yield Path(root, name)


Outcome = tuple[list[Finding], list[NotChecked], int, int]
"""Findings, what was not checked, lines, and functions too large to be followed to their end."""


def _outcomes(files: list[Path], names: list[str], jobs: int | None) -> Iterator[Outcome]:
    count = min(jobs or os.cpu_count() or 1, len(files))
    if count <= 1 or sum(_size(file) for file in files) < BYTES_WORTH_A_PROCESS:
        yield from (check_file(file, names) for file in files)
        return
    with ProcessPoolExecutor(count) as pool:
        yield from pool.map(check_file, files, [names] * len(files), chunksize=8)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def check_file(file: Path, names: Sequence[str]) -> Outcome:
    """The findings in one file; whatever goes wrong is told, and stays in this file."""
    rules = [by_name(name) for name in names]
    try:
        why = _no_source(file)
        if why:
            return [], [NotChecked(str(file), why)], 0, 0
        text = read(file)
        found, gave_up = _look(text, str(file), rules)
        return found, [], text.count("\n") + 1, gave_up
    except SyntaxError as error:
        return [], [NotChecked(str(file), _syntax(error))], 0, 0
    except (OSError, UnicodeError) as error:
        return [], [NotChecked(str(file), f"cannot be read: {error}")], 0, 0
    except (RecursionError, MemoryError):
        return [], [NotChecked(str(file), "nested too deeply")], 0, 0
    except Exception as error:  # one file's surprise must not cost the others
        return [], [NotChecked(str(file), f"tensafe failed on it: {type(error).__name__}: {error}")], 0, 0


def _no_source(file: Path) -> str:
    """Why a file that was named is not worth reading as Python; nothing when it is."""
    if not file.is_file():
        return "not a regular file"
    if file.suffix == ".ipynb":
        return "it is a notebook: export it as a script"
    if file.suffix in PYTHON:
        return ""
    with file.open("rb") as stream:
        first = stream.readline(200)
    return "" if first.startswith(b"#!") and b"python" in first else "its name does not end in .py"


def _syntax(error: SyntaxError) -> str:
    where = f", line {error.lineno}" if error.lineno else ""
    return f"not Python{where}: {error.msg}"
