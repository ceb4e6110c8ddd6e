"""A command line in this process, with toy engines in the place of the real ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tensafe.__main__ import main
from tensafe.errors import TensafeError
from tensafe.findings import (
    AssignThroughIndex,
    Because,
    Finding,
    Fix,
    NotChecked,
    OutOfPlace,
    Record,
    Severity,
    Site,
)
from tensafe.findings.source import decode

GUILTY = "x[m].zero_()"
UNSAFE = "x += 1"


@dataclass
class Answer:
    """What a command said and how it ended."""

    status: int
    out: str
    err: str


def look(text: str, path: str, rules: object = ()) -> list[Finding]:
    """The toy engine: two kinds of guilty statement, one with a safe fix, one with an unsafe one."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for words, severity in ((GUILTY, Severity.ERROR), (UNSAFE, Severity.WARNING)):
            if words in line:
                column = line.index(words) + 1
                at = Site(path, number, column, number, column + len(words), "f")
                fix = Fix(AssignThroughIndex(at), True) if words == GUILTY else Fix(OutOfPlace(at), False)
                found.append(
                    Finding(
                        code="TS106",
                        message="the write is lost",
                        at=at,
                        because=(Because(replace(at, end_column=column + 1), "read here"),),
                        label="written here",
                        name="lost-write",
                        severity=severity,
                        help="assign through the index",
                        fix=fix,
                    )
                )
    return found


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The toy engines; `calls` holds what they were asked, `record` overrides what `run` tells."""
    toys = SimpleNamespace(calls=[], record=Record("run"), status=0, stops=())

    def check_paths(
        paths: Sequence[Path],
        rules: Sequence[object],
        jobs: int | None = None,
        progress: object = None,
        asked: object = None,
    ) -> Record:
        toys.calls.append(("check", paths, rules, jobs))
        files = [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
        if not files:
            raise TensafeError(f"no Python files in {paths[0]}")
        found = [item for file in files for item in look(decode(file.read_bytes())[0], str(file))]
        return Record("check", tuple(found), summary={"files": len(files)}, tool_version="0.1.0")

    def run_program(
        target: str,
        arguments: Sequence[str],
        *,
        module: bool,
        rules: object,
        tell: Callable[[Record], None],
        tell_now: Callable[[Finding], None],
        keep: Callable[[Record], None] | None = None,
    ) -> int:
        toys.calls.append(("run", target, list(arguments), module, rules))
        for finding in toys.stops:
            tell_now(finding)
        tell(toys.record)
        return int(toys.status)

    monkeypatch.setitem(
        sys.modules,
        "tensafe.check",
        SimpleNamespace(
            check_paths=check_paths,
            check_text=look,
            python_files=lambda paths, *rest: list(paths),
            Asked=SimpleNamespace,
        ),
    )
    monkeypatch.setitem(sys.modules, "tensafe.run", SimpleNamespace(run_program=run_program))
    return toys


@pytest.fixture
def tensafe(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Answer]:
    """`tensafe("check", "a.py")` in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str | Path) -> Answer:
        capfd.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:  # --help
            status = int(end.code or 0)
        return Answer(status, *capfd.readouterr())

    return call


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    path = tmp_path / "lost.py"
    path.write_text(f"{GUILTY}\nprint(x)\n")
    return path


def not_checked(*pairs: tuple[str, str]) -> Record:
    return Record("run", (), tuple(NotChecked(what, why) for what, why in pairs))
