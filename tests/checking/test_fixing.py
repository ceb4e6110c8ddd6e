"""`--fix` over several files: a fix is made in the file that it is for, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from checking.projects import Call, check

__all__ = ["check"]
HELPER = "import torch\n\n\ndef wipe(x):\n    h = torch.relu(x)\n    h += 1\n    return h\n"
OURS = """\
import torch
from helper import wipe

def two(y, acc):
    y = y + 1
    acc += 1
    y[[0, 9]].zero_()
    wipe(torch.nn.Parameter(y)).sum().backward()
    return acc
"""


def test_what_looks_the_same_at_that_place_of_a_calling_file_stays(check: Call, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "ours.py").write_text(OURS)
    assert "\ntensafe: 2 warnings in 2 files; " in check("ours.py").out
    answer = check("--unsafe-fixes", ".")
    assert (answer.status, answer.out) == (0, "tensafe: nothing found in 2 files; 2 fixed in 2 files\n")
    assert (tmp_path / "ours.py").read_text() == OURS.replace(".zero_()", " = 0")
    assert (tmp_path / "helper.py").read_text() == HELPER.replace("h += 1", "h = h + 1")


def test_a_file_that_was_not_named_is_told_of_and_not_changed(check: Call, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "ours.py").write_text(OURS)
    assert check("ours.py").out.endswith("in 2 files; 1 fixable with --unsafe-fixes\n")
    answer = check("--unsafe-fixes", "ours.py")
    assert answer.status == 1
    assert "helper.py:6:5 in wipe" in answer.out
    assert answer.out.endswith("1 fixed in 1 file\n")
    assert (tmp_path / "helper.py").read_text() == HELPER
    assert "helper.py" not in check("--diff", "--unsafe-fixes", "ours.py").out
