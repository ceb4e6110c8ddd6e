"""`check_paths` and `check_text`: walking, encodings, bad files, order, processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tensafe import __version__, check
from tensafe.errors import TensafeError
from tensafe.findings import Record
from tensafe.rules._loader import select

LOST = "import torch\nx = torch.rand(3)\nx[x > 0].zero_()\n"


def checked(*paths: Path, jobs: int = 1) -> Record:
    return check.check_paths(paths, select(), jobs)


def places(record: Record) -> list[tuple[str, int]]:
    return [(Path(finding.at.path).name, finding.at.line) for finding in record.findings]


def test_folders_are_walked_and_environments_skipped(tmp_path: Path) -> None:
    for folder in ("", "inner", ".git", ".venv", "__pycache__", "node_modules", "build", "x.egg-info"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "lost.py").write_text(LOST)
    record = checked(tmp_path)
    assert [Path(finding.at.path).parent.name for finding in record.findings] == ["inner", tmp_path.name] or [
        Path(finding.at.path).parent.name for finding in record.findings
    ] == [tmp_path.name, "inner"]
    assert record.summary["files"] == 2
    assert all(Path(finding.at.path).is_absolute() for finding in record.findings)


def test_a_file_named_twice_is_checked_once(tmp_path: Path) -> None:
    path = tmp_path / "lost.py"
    path.write_text(LOST)
    assert places(checked(path, tmp_path, path)) == [("lost.py", 3)]


def test_a_syntax_error_stays_in_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def (:\n")
    (tmp_path / "b.py").write_text(LOST)
    (tmp_path / "c.py").write_bytes(b"import torch\nx = '\xff\xfe'\n")
    (tmp_path / "d.py").write_bytes(b"# -*- coding: nonsense -*-\nimport torch\n")
    (tmp_path / "e.py").write_bytes(b"import torch\0\n")
    record = checked(tmp_path)
    assert places(record) == [("b.py", 3)]
    assert [Path(one.what).name for one in record.not_checked] == ["a.py", "c.py", "d.py", "e.py"]
    assert all("\n" not in one.why and "tensafe failed" not in one.why for one in record.not_checked)


@pytest.mark.parametrize(
    ("head", "encoding"), [("", "utf-8"), ("# coding: latin-1\n", "latin-1"), ("\ufeff", "utf-8")]
)
def test_encodings(tmp_path: Path, head: str, encoding: str) -> None:
    path = tmp_path / "mixed.py"
    path.write_bytes((head + "name = 'é'\n" + LOST).encode(encoding))
    (finding,) = checked(path).findings
    assert finding.at.line == 4 + head.count("\n")


def test_columns_count_characters() -> None:
    text = "import torch\nx = torch.rand(3)\nif 'é': x[x > 0].zero_()\n"
    (finding,) = check.check_text(text, "wide.py", select())
    start, end = finding.at.column - 1, finding.at.end_column - 1
    assert text.splitlines()[2][start:end] == "x[x > 0].zero_()"


def test_a_folder_without_python_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TensafeError, match="no Python files"):
        checked(tmp_path)
    with pytest.raises(TensafeError, match="no such file"):
        checked(tmp_path / "absent.py")


def test_processes_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        (tmp_path / f"m{number:02}.py").write_text(LOST * (number % 3 + 1))
    alone = checked(tmp_path)
    monkeypatch.setattr(check, "BYTES_WORTH_A_PROCESS", 0)
    told: list[tuple[int, int]] = []
    shared = check.check_paths([tmp_path], select(), 2, lambda done, all_: told.append((done, all_)))
    assert shared.findings == alone.findings
    assert told[-1] == (12, 12)


def test_a_surprise_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text(LOST)
    (tmp_path / "b.py").write_text(LOST)
    whole = check.examine

    def surprised(path: str, *rest: object) -> int:
        if path.endswith("a.py"):
            raise KeyError("surprise")
        return whole(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(check, "examine", surprised)
    record = checked(tmp_path)
    assert places(record) == [("b.py", 3)]
    assert "surprise" in record.not_checked[0].why


def test_a_helper_in_another_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text("def squash(x):\n    x *= 0.5\n    return x\n")
    (tmp_path / "train.py").write_text(
        "import torch\nfrom layers import squash\nw = torch.ones(3, requires_grad=True)\n"
        "h = w.tanh()\nsquash(h).sum().backward()\n"
    )
    assert places(checked(tmp_path)) == [("layers.py", 2)]


def test_an_allowed_line_is_left_alone() -> None:
    allowed = LOST.replace("zero_()", "zero_()  # tensafe: allow lost-write")
    assert check.check_text(allowed, "allowed.py", select()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "lost.py").write_text(LOST)
    os.mkfifo(tmp_path / "pipe.py")
    assert checked(tmp_path).not_checked == ()
    record = checked(tmp_path / "pipe.py", tmp_path / "lost.py")
    assert places(record) == [("lost.py", 3)]
    assert [one.why for one in record.not_checked] == ["not a regular file"]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.ipynb", '{"worksheets": []}', "a notebook of format 3: open and save it once"),
        ("a.json", '{"cells": []}', "its name does not end in .py"),
        ("a.txt", LOST, "its name does not end in .py"),
        ("a.pyw", LOST, ""),
        ("script", LOST, ""),
        ("script.in", f"#!/usr/bin/env python3\n{LOST}", ""),
    ],
)
def test_what_is_no_python_is_not_parsed(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text)
    record = checked(tmp_path / name)
    assert [one.why for one in record.not_checked] == ([why] if why else [])
    assert len(record.findings) == (not why)


def test_the_record_names_the_version(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(LOST)
    assert checked(tmp_path).tool_version == __version__


@pytest.mark.parametrize(
    ("lines", "safe"),
    [
        ("x = torch.zeros(3)\nx[[0, 1]].zero_()\n", True),
        ("x = torch.ones(3, requires_grad=True)\nx[[0, 1]].zero_()\n", False),
        ("l = torch.nn.Linear(3, 3)\nx = torch.sigmoid(l(torch.ones(3)))\nx[x > .5].zero_()\n", False),
        ("def f(x):\n    y = torch.sigmoid(x)\n    y[y > .5].zero_()\n    return y\n", False),
    ],
)
def test_a_lost_write_is_safely_mended_outside_graphs_only(lines: str, safe: bool) -> None:
    (finding,) = check.check_text(f"import torch\n{lines}", "a.py", select(["TS106"]))
    assert finding.fix is not None
    assert finding.fix.safe is safe


def test_functions_too_large_to_follow_are_counted(tmp_path: Path) -> None:
    body = "".join(f"    x = x + {number}\n    x.mul_(2)\n" for number in range(20_000))
    (tmp_path / "large.py").write_text(f"import torch\ndef f(x):\n{body}    return x\n")
    (tmp_path / "small.py").write_text("import torch\ndef f(x):\n    return x.exp()\n")
    assert check.check_paths([tmp_path / "small.py"], select()).summary["functions_given_up"] == 0
    assert check.check_paths([tmp_path / "large.py"], select()).summary["functions_given_up"] != 0
