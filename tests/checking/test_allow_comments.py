"""Comments for a whole file, and comments that silence nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from checking.projects import LOST, Call, check, codes

__all__ = ["check"]
WORKS = LOST.rstrip("\n")


@pytest.mark.parametrize(
    "head",
    [
        "# tensafe: allow-file lost-write\n",
        "# tensafe: allow-file TS106\n",
        "# tensafe: allow-file graph-cut, TS106 -- generated\n",
        "# tensafe: allow-file\n",
        "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n\n# tensafe: allow-file lost-write\n",
        '"""A page.\n\nof two lines"""\n# tensafe: allow-file lost-write\n',
        "\ufeff# tensafe: allow-file lost-write\n",
        "import os\n# tensafe: allow-file lost-write\n",
        "def f():\n    # tensafe: allow-file lost-write\n    return 1\n",
    ],
)
def test_a_whole_file(check: Call, tmp_path: Path, head: str) -> None:
    (tmp_path / "a.py").write_text(head + LOST, encoding="utf-8")
    assert check("a.py").out == "tensafe: nothing found in 1 file\n"


@pytest.mark.parametrize(
    "head",
    [
        "# tensafe: allow-file graph-cut\n",
        "# tensafe: allow-files lost-write\n",
        '"""# tensafe: allow-file lost-write\n"""\n',
        "x = 1  # tensafe: allow-file lost-write\n",
    ],
)
def test_not_a_whole_file(check: Call, tmp_path: Path, head: str) -> None:
    (tmp_path / "a.py").write_text(head + LOST)
    assert check("a.py").status == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{WORKS}  # tensafe: allow lost-write\n", ""),
        (f"{WORKS}  # tensafe: allow\n", ""),
        (f"# tensafe: allow-file lost-write\n{LOST}", ""),
        ('x = "# tensafe: allow lost-write"\n', ""),
        ("x = 1  # tensafe: allow lost-write\n", "this `allow` silences nothing: no lost-write here"),
        ("x = 1  # tensafe: allow\n", "this `allow` silences nothing"),
        (
            "# tensafe: allow-file lost-write\nx = 1\n",
            "this `allow-file` silences nothing: no lost-write here",
        ),
        (
            "x = 1  # tensafe: allow-file\n",
            "this `allow-file` silences nothing: it stands behind code",
        ),
        (f"{LOST}# tensafe: allow-file lost-write\n", ""),
        (
            "x = 1  # tensafe: allow lost-writes\n",
            "no rule is called 'lost-writes' (did you mean lost-write?)",
        ),
        (f"{WORKS}  # tensafe: allow lost-write, graph-cut\n", "silences nothing: no graph-cut here"),
    ],
)
def test_what_silences_nothing_is_reported(check: Call, tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "a.py").write_text(text)
    answer = check("--unused-allows", "--format", "grouped", "a.py")
    assert answer.status == bool(why)
    assert (why in answer.out) if why else ("TS001" not in answer.out)
    assert "TS001" not in check("--format", "grouped", "a.py").out


def test_only_what_was_asked_is_judged(check: Call, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1  # tensafe: allow lost-write\ny = 2  # tensafe: allow\n")
    assert codes(check("--unused-allows", "--format", "grouped", "--select", "TS2")) == []
    assert len(codes(check("--unused-allows", "--format", "grouped"))) == 2
    (tmp_path / "pyproject.toml").write_text(
        '[tool.tensafe]\nunused-allows = true\nper-file-ignores = {"a.py" = ["TS106"]}\n'
    )
    assert codes(check("--format", "grouped")) == []


def test_one_behind_code_is_told_whatever_was_asked_and_stays(check: Call, tmp_path: Path) -> None:
    text = "x = 1  # tensafe: allow-file lost-write\n"
    (tmp_path / "a.py").write_text(text)
    answer = check("--unused-allows", "--select", "TS2", "--fix", "a.py")
    assert (answer.status, (tmp_path / "a.py").read_text()) == (1, text)
    assert "put it on a line of its own, anywhere in the file" in answer.out


def test_a_file_that_was_not_read_is_not_judged(check: Call, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = = 1  # tensafe: allow lost-write\n")
    (tmp_path / "b.py").write_text("x = 1\n")
    assert "TS001" not in check("--unused-allows").out


def test_a_file_that_was_not_read_to_its_end_is_not_judged(check: Call, tmp_path: Path) -> None:
    body = "    x.mul_(2)\n" + "    y = 1\n" * 4_000
    text = f"import torch\ndef f(x):\n{body}    return x  # tensafe: allow lost-write\n"
    (tmp_path / "a.py").write_text(text)
    assert "TS001" not in check("--unused-allows", "--format", "grouped").out
    (tmp_path / "a.py").write_text(text.replace("    y = 1\n", ""))
    assert "TS001" in check("--unused-allows", "--format", "grouped").out


def test_a_comment_used_from_another_file_is_used(check: Call, tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text(
        "def squash(x):\n    x *= 0.5  # tensafe: allow saved-tensor-modified\n    return x\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch\nfrom layers import squash\nw = torch.ones(3, requires_grad=True)\n"
        "y = torch.sigmoid(w)\nsquash(y)\ny.sum().backward()\n"
    )
    assert check("--unused-allows").out == "tensafe: nothing found in 2 files\n"
    assert codes(check("--unused-allows", "--format", "grouped", "layers.py")) == ["layers.py 2 TS001"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # tensafe: allow lost-write\n", "x = 1\n"),
        ("x = 1\n    # tensafe: allow lost-write\n", "x = 1\n"),
        ("# tensafe: allow-file lost-write\nx = 1", "x = 1"),
        ("x = 1  # noqa: E501  # tensafe: allow lost-write -- why\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # tensafe: allow lost-write  # noqa\n", "x = 1  # noqa\n"),
        ("x = 1  # tensafe: allow Nonsense, lost-write", "x = 1"),
        (
            f"{WORKS}  # tensafe: allow graph-cut, Lost-Write -- the mask\n",
            f"{WORKS}  # tensafe: allow Lost-Write -- the mask\n",
        ),
    ],
)
def test_it_is_taken_away(check: Call, tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "a.py").write_text(before)
    assert check("--unused-allows", "--fix", "a.py").status == 0
    assert (tmp_path / "a.py").read_text() == after
