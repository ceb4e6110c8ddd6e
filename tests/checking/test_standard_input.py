"""`tensafe check -`: what an editor sends, checked, fixed and compared under the name of its file."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from checking.projects import FIXED, LOST, Call, check, codes
from notebooks.building import notebook

__all__ = ["check"]


def test_the_name_of_the_file_is_shown_with_the_lines_that_were_sent(check: Call, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("something else\n")
    answer = check("-", "--stdin-filename", "a.py", stdin=LOST)
    assert (answer.status, answer.err) == (1, "")
    assert " --> a.py:4:1\n" in answer.out
    assert "4 | x[x > 0].zero_()\n" in answer.out
    assert answer.out.endswith("tensafe: 1 warning in a.py; 1 fixable with --fix\n")


def test_without_a_name(check: Call) -> None:
    assert " --> -:4:1\n" in check("-", stdin=LOST).out
    assert check("-", stdin="x = 1\n").out == "tensafe: nothing found in 1 file\n"


def test_fix_prints_the_whole_text(check: Call, tmp_path: Path) -> None:
    answer = check("-", "--fix", "--stdin-filename", "a.py", stdin=LOST)
    assert (answer.status, answer.out) == (0, FIXED)
    assert answer.err == "tensafe: nothing found in 1 file; 1 fixed in 1 file\n"
    assert not (tmp_path / "a.py").exists()


@pytest.mark.parametrize("text", ["x = 1\n", "x = (\n", "", "\ufeffx = 'é'\r\n"])
def test_fix_prints_what_it_cannot_fix_as_it_was(check: Call, text: str) -> None:
    answer = check("-", "--fix", stdin=text)
    assert (answer.status, answer.out) == (2 if text == "x = (\n" else 0, text)


def test_what_is_left_goes_to_standard_error(check: Call) -> None:
    text = LOST + "w = torch.ones(3, requires_grad=True)\nw.add_(1)\n"
    answer = check("-", "--fix", "--select", "TS106,TS203", "--format", "grouped", stdin=text)
    assert answer.out == text.replace(LOST, FIXED)


def test_difference(check: Call) -> None:
    answer = check("-", "--diff", "--stdin-filename", "src/a.py", stdin=LOST)
    assert answer.status == 1
    assert answer.out.startswith("--- a/src/a.py\n+++ b/src/a.py\n@@ -1,4 +1,4 @@\n")
    assert check("-", "--diff", stdin=FIXED).status == 0


def test_helpers_beside_the_file_are_followed(check: Call, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/layers.py").write_text("def squash(x):\n    x *= 0.5\n    return x\n")
    text = (
        "def other(x):\n    x *= 0.5\n    return x\n"
        "import torch\nfrom layers import squash\nw = torch.ones(3, requires_grad=True)\n"
        "y = torch.sigmoid(w)\nsquash(y)\ny.sum().backward()\n"
    )
    answer = check("-", "--stdin-filename", "src/new.py", "--format", "grouped", stdin=text)
    assert codes(answer) == ["src/layers.py 2 TS201"]
    answer = check("-", "--stdin-filename", "src/new.py", "--unsafe-fixes", stdin=text)
    assert answer.out == text


def test_settings_are_those_of_the_file(check: Call, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.tensafe]\nper-file-ignores = {"tests/*" = ["TS106"]}\nexclude = ["old"]\n'
    )
    assert check("-", "--stdin-filename", "tests/a.py", stdin=LOST).status == 0
    assert check("-", "--stdin-filename", "src/a.py", stdin=LOST).status == 1
    assert check("-", "--stdin-filename", "old/a.py", stdin=LOST).status == 1
    answer = check("-", "--stdin-filename", "old/a.py", "--force-exclude", "--fix", stdin=LOST)
    assert (answer.status, answer.out) == (0, LOST)


def test_a_notebook(check: Call) -> None:
    text = notebook("import torch\nx = torch.rand(3)", "x[x > 0].zero_()", indent=1)
    answer = check("-", "--stdin-filename", "a.ipynb", stdin=text)
    assert " --> a.ipynb:cell 2:1:1\n" in answer.out
    answer = check("-", "--stdin-filename", "a.ipynb", "--fix", stdin=text)
    assert answer.out == text.replace("x[x > 0].zero_()", "x[x > 0] = 0")


def test_baseline_and_json(check: Call, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(LOST)
    check("--baseline", "known.json", "--write-baseline", "a.py")
    (tmp_path / "a.py").unlink()
    answer = check("-", "--stdin-filename", "a.py", "--baseline", "known.json", stdin="\n" + LOST)
    assert (answer.status, answer.out) == (0, "tensafe: nothing found in 1 file; 1 known to known.json\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["-", "a.py"], "standard input is checked alone"),
        (["a.py", "--stdin-filename", "a.py"], "--stdin-filename goes with the path `-`"),
        (["-", "--write-baseline", "--baseline", "x"], "--write-baseline needs files"),
    ],
)
def test_what_does_not_go_together(check: Call, arguments: list[str], why: str) -> None:
    answer = check(*arguments)
    assert (answer.status, why in answer.err) == (2, True)


def test_the_file_that_was_sent_is_not_overwritten(check: Call, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(LOST)
    answer = check("-", "--stdin-filename", "a.py", "--output", "a.py", stdin=LOST)
    assert answer.err.endswith("a.py: it is one of the files to check\n")
    assert (tmp_path / "a.py").read_text() == LOST


def test_a_closed_standard_input(tmp_path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m tensafe check - <&-"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, "tensafe: cannot read standard input: it is closed\n")
