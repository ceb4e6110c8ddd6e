"""The two main commands with the real engines, in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.test_bad_input import command

MODIFIED = """\
import sys
import torch

weight = torch.ones(3, requires_grad=True)


def act(x):
    gate = x.sigmoid()
    gate *= 2
    return gate


print("arguments", sys.argv[1:])
act(weight).sum().backward()
"""
LOST = """\
import torch

x = torch.rand(4)
x[x > 0.5].zero_()
print(x.shape)
"""
torch_is_here = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("torch") is None, reason="the runtime engine needs torch"
)


@torch_is_here
def test_run_names_both_lines_and_leaves_the_program_its_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(MODIFIED)
    plain = command("train.py", "--strict", cwd=tmp_path)
    done = command("-m", "tensafe", "run", "train.py", "--strict", cwd=tmp_path)
    assert (
        (done.returncode, done.stdout) == (plain.returncode, plain.stdout) == (1, "arguments ['--strict']\n")
    )
    assert "train.py:9:" in done.stderr
    assert "saved here for SigmoidBackward0" in done.stderr
    assert done.stderr.index("changed in place here") < done.stderr.index("Traceback (most recent call last)")
    assert done.stderr.splitlines()[-1] == "tensafe: 1 error in train.py"


@torch_is_here
def test_the_page_of_a_run_shows_what_was_saved_and_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(MODIFIED)
    plain = command("train.py", cwd=tmp_path)
    done = command(
        "-m", "tensafe", "run", "--format", "html", "--output", "run.html", "train.py", cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert done.stderr.splitlines()[-1] == "tensafe: 1 error in train.py; written to run.html"
    page = (tmp_path / "run.html").read_text()
    for words in ("<mark>gate *= 2</mark>", "saved for SigmoidBackward0", "bytes 0 to 12; shares 12 B"):
        assert words in page


@torch_is_here
def test_run_keeps_the_status_of_a_program_that_ends_well(tmp_path: Path) -> None:
    (tmp_path / "lost.py").write_text(LOST)
    done = command(
        "-m", "tensafe", "run", "--format", "json", "--output", "run.json", "lost.py", cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, "torch.Size([4])\n")
    (finding,) = json.loads((tmp_path / "run.json").read_text())["findings"]
    assert (finding["name"], finding["location"]["line"]) == ("lost-write", 4)
    strict = command("-m", "tensafe", "run", "--strict", "lost.py", cwd=tmp_path)
    assert (strict.returncode, strict.stdout) == (1, "torch.Size([4])\n")
    told = command("-m", "tensafe", "report", "run.json", cwd=tmp_path)
    assert (told.returncode, told.stdout) == (1, strict.stderr)


@torch_is_here
def test_run_is_silent_about_a_clean_program(tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("import torch\nprint(torch.ones(1).exp().sum() > 0)\n")
    done = command("-m", "tensafe", "run", "clean.py", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "tensor(True)\n", "")


def test_check_finds_and_fixes(tmp_path: Path) -> None:
    path = tmp_path / "lost.py"
    path.write_text(LOST)
    done = command("-m", "tensafe", "check", "lost.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "lost-write" in done.stdout
    assert " --> lost.py:4:1" in done.stdout
    assert done.stdout.splitlines()[-1] == "tensafe: 1 warning in lost.py; 1 fixable with --fix"
    done = command("-m", "tensafe", "check", "--fix", "lost.py", cwd=tmp_path)
    assert done.returncode == 0
    assert path.read_text() == LOST.replace("x[x > 0.5].zero_()", "x[x > 0.5] = 0")


def test_check_allows(tmp_path: Path) -> None:
    (tmp_path / "lost.py").write_text(LOST.replace(".zero_()", ".zero_()  # tensafe: allow lost-write"))
    assert command("-m", "tensafe", "check", "lost.py", cwd=tmp_path).returncode == 0


def test_a_file_that_does_not_parse_is_told_and_the_rest_checked(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("x = (\n")
    (tmp_path / "lost.py").write_text(LOST)
    done = command("-m", "tensafe", "check", ".", cwd=tmp_path)
    assert done.returncode == 1
    assert "lost-write" in done.stdout
    assert "not checked: broken.py: " in done.stdout
    assert command("-m", "tensafe", "check", "broken.py", cwd=tmp_path).returncode == 2
