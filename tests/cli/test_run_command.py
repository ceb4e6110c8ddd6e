"""`tensafe run`: what belongs to the program, what is told where, and with which status it ends."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli.conftest import Answer, look, not_checked
from tensafe.cli.run import split
from tensafe.errors import TensafeError
from tensafe.findings import Record, Severity, from_json

Call = Callable[..., Answer]


@pytest.mark.parametrize(
    ("words", "ours", "theirs"),
    [
        ("s.py", "", "s.py"),
        ("s.py --strict --format json -m x", "", "s.py --strict --format json -m x"),
        ("--strict s.py --strict", "--strict", "s.py --strict"),
        ("--format json --output o s.py -x", "--format json --output o", "s.py -x"),
        ("--format=json s.py", "--format=json", "s.py"),
        ("-m mod --lr 3", "", "-m mod --lr 3"),
        ("-mmod --lr 3", "", "-m mod --lr 3"),
        ("--notices -m mod -m", "--notices", "-m mod -m"),
        ("-- s.py -- a", "", "s.py -- a"),
        ("s.py -- --help", "", "s.py -- --help"),
        ("s.py -h", "", "s.py -h"),
        ("--select TS1 --ignore TS2 s.py", "--select TS1 --ignore TS2", "s.py"),
        ("--output s.py", "--output s.py", ""),
        ("-x s.py", "-x", "s.py"),
        ("", "", ""),
    ],
)
def test_everything_after_the_program_is_its_own(words: str, ours: str, theirs: str) -> None:
    assert split(words.split()) == (ours.split(), theirs.split())


@pytest.mark.parametrize("words", ["-", "-m", "--strict -m"])
def test_what_is_no_program(words: str) -> None:
    with pytest.raises(TensafeError):
        split(words.split())


def test_the_engine_gets_the_program(tensafe: Call, engines: SimpleNamespace) -> None:
    assert tensafe("run", "--select", "TS2", "-m", "pack.train", "--lr", "3").status == 0
    ((_, target, arguments, module, rules),) = engines.calls
    assert (target, arguments, module) == ("pack.train", ["--lr", "3"], True)
    assert {rule.code[:3] for rule in rules} == {"TS2"}


def test_a_clean_program_is_silent_in_a_pipe(tensafe: Call, engines: SimpleNamespace) -> None:
    assert tensafe("run", "s.py") == Answer(0, "", "")


def test_a_clean_program_leaves_one_line_on_a_terminal(
    tensafe: Call, engines: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    watched = Terminal()
    monkeypatch.setattr(sys, "stderr", watched)
    monkeypatch.setenv("NO_COLOR", "1")
    tensafe("run", "s.py")
    assert watched.getvalue() == "tensafe: nothing found\n"


def test_findings_go_to_standard_error(tensafe: Call, engines: SimpleNamespace, lost: Path) -> None:
    engines.record = Record("run", tuple(look(lost.read_text(), str(lost))))
    answer = tensafe("run", "s.py")
    assert (answer.status, answer.out) == (0, "")
    assert answer.err.startswith("error[TS106] lost-write: the write is lost\n --> lost.py:1:1 in f\n")
    assert answer.err.endswith("\ntensafe: 1 error in lost.py\n")


def test_what_was_not_checked_is_told_in_a_pipe_too(tensafe: Call, engines: SimpleNamespace) -> None:
    engines.record = not_checked(("worker 3", "it was killed"))
    assert tensafe("run", "s.py").err == (
        "not checked: worker 3: it was killed\ntensafe: nothing found; 1 thing not checked\n"
    )


def test_a_finding_that_stops_the_program_is_told_at_once_and_once(
    tensafe: Call, engines: SimpleNamespace, lost: Path
) -> None:
    (finding,) = look(lost.read_text(), str(lost))
    engines.stops = (finding,)
    engines.record = Record("run", (replace(finding, count=2),))
    text = tensafe("run", "s.py").err
    assert text.count("written here") == 1
    assert "lost.py:1:1 in f (told above) (seen 2 times)" in text


@pytest.mark.parametrize(
    ("severity", "own", "strict", "status"),
    [
        (Severity.ERROR, 0, False, 0),
        (Severity.ERROR, 0, True, 1),
        (Severity.WARNING, 0, True, 1),
        (Severity.NOTICE, 0, True, 0),
        (Severity.ERROR, 7, True, 7),
        (Severity.ERROR, 7, False, 7),
        (None, 0, True, 0),
        (None, 3, True, 3),
    ],
)
def test_the_exit_status(
    tensafe: Call,
    engines: SimpleNamespace,
    lost: Path,
    severity: Severity | None,
    own: int,
    strict: bool,
    status: int,
) -> None:
    (finding,) = look(lost.read_text(), str(lost))
    engines.record = Record("run", (replace(finding, severity=severity),) if severity else ())
    engines.status = own
    assert tensafe("run", *(["--strict"] if strict else []), "s.py").status == status


def test_the_record_goes_whole_into_a_file(
    tensafe: Call, engines: SimpleNamespace, lost: Path, tmp_path: Path
) -> None:
    engines.record = Record("run", tuple(look(lost.read_text(), str(lost))))
    answer = tensafe("run", "--format", "json", "--output", "run.json", "s.py")
    assert from_json((tmp_path / "run.json").read_text()) == engines.record
    assert (answer.out, answer.err) == ("", "tensafe: 1 error in lost.py; written to run.json\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lost.py", "run.json"]


def test_a_clean_record_is_written_without_a_word(
    tensafe: Call, engines: SimpleNamespace, tmp_path: Path
) -> None:
    assert tensafe("run", "--format", "json", "--output", "run.json", "s.py") == Answer(0, "", "")
    assert json.loads((tmp_path / "run.json").read_text())["findings"] == []


def test_a_program_that_changes_folder_moves_nothing(
    tensafe: Call, engines: SimpleNamespace, lost: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    engines.record = Record("run", tuple(look(lost.read_text(), str(lost))))
    inner = sys.modules["tensafe.run"].run_program

    def run_program(*call: object, **more: object) -> int:
        os.chdir("deep")
        return int(inner(*call, **more))

    monkeypatch.setattr(sys.modules["tensafe.run"], "run_program", run_program)
    answer = tensafe("run", "--output", "run.txt", "s.py")
    assert "--> lost.py:1:1" in (tmp_path / "run.txt").read_text()
    assert answer.err.endswith("written to run.txt\n")


def test_a_file_elsewhere_is_named_in_full(
    tensafe: Call, engines: SimpleNamespace, lost: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    engines.record = Record("run", tuple(look(lost.read_text(), str(lost))))
    output = tmp_path_factory.mktemp("elsewhere") / "run.json"
    assert tensafe("run", "--output", str(output), "s.py").err.endswith(f"written to {output}\n")


@pytest.mark.parametrize("output", ["missing/run.json", "."])
def test_an_unwritable_output_is_known_before_the_program_runs(
    tensafe: Call, engines: SimpleNamespace, output: str
) -> None:
    answer = tensafe("run", "--output", output, "s.py")
    assert answer.status == 2
    assert answer.err.startswith("tensafe: cannot write ")
    assert answer.err.count("\n") == 1
    assert engines.calls == []


def test_an_output_that_becomes_unwritable_costs_the_program_nothing(
    tensafe: Call, engines: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    inner = sys.modules["tensafe.run"].run_program

    def run_program(*call: object, **more: object) -> int:
        (tmp_path / "deep").rmdir()
        return int(inner(*call, **more))

    monkeypatch.setattr(sys.modules["tensafe.run"], "run_program", run_program)
    answer = tensafe("run", "--output", "deep/run.json", "s.py")
    assert answer.status == 0
    assert answer.err.startswith("tensafe: cannot write ")


def test_a_closed_standard_error_costs_the_program_nothing(
    tensafe: Call, engines: SimpleNamespace, lost: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines.record = Record("run", tuple(look(lost.read_text(), str(lost))))
    engines.status = 5
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    inner = sys.modules["tensafe.run"].run_program

    def run_program(*call: object, **more: object) -> int:
        stream.close()
        return int(inner(*call, **more))

    monkeypatch.setattr(sys.modules["tensafe.run"], "run_program", run_program)
    assert tensafe("run", "s.py").status == 5
