"""`tensafe check`: brings the rules and the static engine together, over many files."""

from __future__ import annotations

import functools
import gc
import io
import os
import time
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tensafe import __version__, notebooks
from tensafe.checking import cache as caching
from tensafe.checking.cell_sites import in_cells
from tensafe.checking.comments import allow_comments, unused
from tensafe.checking.config import Settings
from tensafe.checking.files import digest, digest_of, nothing
from tensafe.checking.files import python_files as python_files
from tensafe.checking.outcome import Outcome
from tensafe.checking.stamp import stamp
from tensafe.facts import Call, History
from tensafe.findings import Finding, NotChecked, Record
from tensafe.findings.allow import Allows
from tensafe.findings.cells import split_cell
from tensafe.findings.source import decode, split_lines
from tensafe.rules._loader import Rule, by_name

PYTHON = frozenset({".py", ".pyw", ".pyi", ".ipynb", ""})
BYTES_WORTH_A_PROCESS = 400_000


@dataclass(frozen=True)
class Asked:
    """What a project asks of a check beyond its rules."""

    settings: Settings | None = None
    force_exclude: bool = False  # leave excluded files out although they are named
    unused_allows: bool = False
    cached: bool = False


def examine(path: str, text: str, ask: Callable[[Call, History], None], consulted: set[str]) -> int:
    """The static engine, which is loaded when the first file is not known from an earlier check."""
    from tensafe.static import examine

    return examine(path, text, ask, consulted)


def check_text(text: str, path: str, rules: Sequence[Rule]) -> list[Finding]:
    """The findings in one file's text, by line; raises SyntaxError when it is no Python."""
    return look(text, path, rules).findings


def look(text: str, path: str, rules: Sequence[Rule]) -> Outcome:
    """The findings in one text, and everything on which they depend."""
    found: dict[tuple[str, str, int, int], Finding] = {}

    def ask(call: Call, history: History) -> None:
        for rule in rules:
            if call.kind in rule.asked_at:
                for finding in rule.judge(call, history):
                    _keep(found, finding)

    consulted: set[str] = set()
    gave_up = examine(path, text, ask, consulted)
    outcome = Outcome(gave_up=gave_up, lines=text.count("\n") + 1, comments=allow_comments(text, path))
    outcome.consulted = dict.fromkeys(sorted(consulted), "")
    allows = Allows(functools.cache(lambda other: split_lines(text) if other == path else _lines_of(other)))
    for finding in found.values():
        uses = list(allows.uses(finding))
        outcome.uses += uses
        if not uses:
            outcome.findings.append(finding)
    outcome.findings.sort(
        key=lambda finding: (finding.at.path, finding.at.line, finding.at.column, finding.code)
    )
    return outcome


def _keep(found: dict[tuple[str, str, int, int], Finding], finding: Finding) -> None:
    """One finding for each place: the graver, then the first."""
    key = (finding.code, finding.at.path, finding.at.line, finding.at.column)
    known = found.get(key)
    if known is None or _GRAVITY[finding.severity.value] > _GRAVITY[known.severity.value]:
        found[key] = finding


_GRAVITY = {"notice": 0, "warning": 1, "error": 2}


def _lines_of(path: str) -> list[str]:
    """The lines of another file that the one at work calls."""
    try:
        with tokenize.open(path) as file:
            return split_lines(file.read())
    except (OSError, SyntaxError, UnicodeError):
        return []


def check_paths(
    paths: Sequence[Path],
    rules: Sequence[Rule],
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    asked: Asked | None = None,
) -> Record:
    """Check files and folders; findings by file and line, whatever the number of processes."""
    started = time.perf_counter()
    asked = asked or Asked()
    settings = asked.settings
    files = python_files(paths, settings.excludes if settings else nothing, asked.force_exclude)
    names = [rule.code for rule in rules]
    cache = caching.opened(stamp(names)) if asked.cached else None
    outcomes: dict[Path, Outcome] = {}
    try:
        for number, (file, outcome) in enumerate(_outcomes(files, names, jobs, cache), 1):
            outcomes[file] = outcome
            if progress is not None:
                progress(number, len(files))
    finally:
        if cache is not None:
            cache.close()
    return _record({file: outcomes[file] for file in files}, rules, asked, started)


def check_given(data: bytes, path: str, rules: Sequence[Rule], asked: Asked) -> Record:
    """Check a content that is not, or not yet, the file's own."""
    started = time.perf_counter()
    outcome = check_bytes(data, path, [rule.code for rule in rules])
    return _record({Path(path): outcome}, rules, asked, started)


def _record(outcomes: Mapping[Path, Outcome], rules: Sequence[Rule], asked: Asked, started: float) -> Record:
    summary: dict[str, float | int | str] = {
        "files": len(outcomes),
        "lines": sum(outcome.lines for outcome in outcomes.values()),
        "functions_given_up": sum(outcome.gave_up for outcome in outcomes.values()),
        "seconds": round(time.perf_counter() - started, 3),
    }
    not_checked = tuple(item for outcome in outcomes.values() for item in outcome.not_checked)
    return Record("check", _told(outcomes, rules, asked), not_checked, summary, __version__)


def _told(outcomes: Mapping[Path, Outcome], rules: Sequence[Rule], asked: Asked) -> tuple[Finding, ...]:
    """The findings that the project wants to hear of, as grave as it calls them."""
    found: Iterable[Finding] = _without_repeats(item for one in outcomes.values() for item in one.findings)
    settings = asked.settings
    if settings is not None:
        found = [
            settings.judged(finding)
            for finding in found
            if not settings.ignores(finding) and not _is_excluded(finding, outcomes, settings)
        ]
    idle = _unused_allows(outcomes, rules, settings) if asked.unused_allows else []
    if idle:
        place = {str(file): number for number, file in enumerate(outcomes)}
        end = len(place)
        found = sorted(
            [*found, *idle],
            key=lambda item: (
                place.get(split_cell(item.at.path)[0], end),
                item.at.path,
                item.at.line,
            ),
        )
    return tuple(found)


def _is_excluded(finding: Finding, outcomes: Mapping[Path, Outcome], settings: Settings) -> bool:
    """Whether it lies in a file that the project leaves out, and that only a file which calls it led to."""
    file = Path(split_cell(finding.at.path)[0])
    return file not in outcomes and settings.excludes(file)


def _unused_allows(
    outcomes: Mapping[Path, Outcome], rules: Sequence[Rule], settings: Settings | None
) -> list[Finding]:
    """Comments that silenced nothing; one in a file of which a part was given up may do so there."""
    codes = frozenset(rule.code for rule in rules)
    whole = [outcome for outcome in outcomes.values() if not outcome.gave_up and not outcome.not_checked]
    return unused(
        (comment for outcome in whole for comment in outcome.comments),
        (use for outcome in outcomes.values() for use in outcome.uses),
        lambda path: codes - settings.ignored_in(path) if settings else codes,
    )


def _without_repeats(findings: Iterable[Finding]) -> list[Finding]:
    """A fault in a shared helper is met from every file that calls it, and told once."""
    first: dict[tuple[str, str, int, int], Finding] = {}
    for finding in findings:
        first.setdefault((finding.code, finding.at.path, finding.at.line, finding.at.column), finding)
    return list(first.values())


def _outcomes(
    files: list[Path], names: list[str], jobs: int | None, cache: caching.Cache | None
) -> Iterator[tuple[Path, Outcome]]:
    """The outcome of each file: those that are known, then those that are worked out now."""
    unknown = []
    for file in files:
        known = cache.find(file) if cache is not None else None
        if known is None:
            unknown.append(file)
        else:
            known.consulted = {}  # nobody asks any more, and there are many files
            yield file, known
    for file, outcome in zip(unknown, _worked_out(unknown, names, jobs), strict=True):
        if cache is not None:
            cache.keep(file, outcome)
        outcome.consulted = {}
        yield file, outcome


def _worked_out(files: list[Path], names: list[str], jobs: int | None) -> Iterator[Outcome]:
    count = min(jobs or os.cpu_count() or 1, len(files))
    if files:
        import tensafe.static  # noqa: F401 -- once, before the processes part
    if count <= 1 or sum(_size(file) for file in files) < BYTES_WORTH_A_PROCESS:
        with _few_collections():
            yield from (check_file(file, names) for file in files)
        return
    with ProcessPoolExecutor(count, initializer=gc.disable) as pool:
        yield from pool.map(check_file, files, [names] * len(files), chunksize=8)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Of cycles, while many files are checked: the engine collects them itself, once for many files."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def check_file(file: Path, names: Sequence[str]) -> Outcome:
    """The outcome of one file; whatever goes wrong is told, and stays in this file."""
    try:
        why = _no_source(file)
        return _failed(str(file), why) if why else check_bytes(file.read_bytes(), str(file), names)
    except OSError as error:
        return _failed(str(file), f"cannot be read: {error}")


def check_bytes(data: bytes, path: str, names: Sequence[str]) -> Outcome:
    """The outcome of a file with this content, a notebook by its name."""
    rules = [by_name(name) for name in names]
    try:
        outcome = _read_and_look(data, path, rules)
    except SyntaxError as error:
        outcome = _failed(path, _syntax(error))
    except notebooks.NotebookError as error:
        outcome = _failed(path, str(error))
    except UnicodeError as error:
        outcome = _failed(path, f"cannot be read: {error}")
    except (RecursionError, MemoryError):
        return _failed(path, "nested too deeply")
    except Exception as error:  # one file's surprise must not cost the others
        return _failed(path, f"tensafe failed on it: {type(error).__name__}: {error}")
    outcome.consulted = {other: digest_of(other) for other in outcome.consulted}
    outcome.digest = digest(data)
    return outcome


def _read_and_look(data: bytes, path: str, rules: Sequence[Rule]) -> Outcome:
    if not notebooks.is_notebook(path):
        return look(_decoded(data), path, rules)
    program = notebooks.Program(notebooks.read(_notebook_text(data)))
    outcome = look(program.text, path, rules)
    in_cells(outcome, program, path)
    return outcome


def _notebook_text(data: bytes) -> str:
    try:
        return decode(data)[0]
    except ValueError as error:
        raise notebooks.NotebookError(f"cannot be read: {error}") from None


def _decoded(data: bytes) -> str:
    """The text of a Python file, in the encoding that it declares (PEP 263), as `tokenize.open` gives it."""
    if b"\0" in data:  # CPython 3.10 would raise a ValueError
        raise SyntaxError("it holds NUL bytes")
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding).read()


def _failed(path: str, why: str) -> Outcome:
    return Outcome(not_checked=[NotChecked(path, why)])


def _no_source(file: Path) -> str:
    """Why a file that was named is not worth reading as Python; nothing when it is."""
    if not file.is_file():
        return "not a regular file"
    if file.suffix in PYTHON:
        return ""
    with file.open("rb") as stream:
        first = stream.readline(200)
    return "" if first.startswith(b"#!") and b"python" in first else "its name does not end in .py"


def _syntax(error: SyntaxError) -> str:
    where = f", line {error.lineno}" if error.lineno else ""
    return f"not Python{where}: {error.msg}"
