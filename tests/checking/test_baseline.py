"""`--baseline`: known findings are left out wherever their lines move, new ones told, gone ones said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from checking.projects import LOST, Call, check, codes

__all__ = ["check"]
COUNTED = (
    '{{"tool": "tensafe", "version": 1, "baseline":'
    ' [{{"path": "a\\n::error::\\u001b", "rule": "TS106", "function": "", "line": "", "count": {}}}]}}'
)
MASKED = "import torch\n\n\ndef f():\n    x = torch.rand(3)\n    x[x > 0].zero_()\n    return x\n"


@pytest.fixture
def known(check: Call, tmp_path: Path) -> Path:
    """A project whose two findings are known."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text(LOST)
    (tmp_path / "src/b.py").write_text(MASKED)
    answer = check("--baseline", "known.json", "--write-baseline")
    assert answer.status == 0
    assert answer.out == "tensafe: 2 findings written to known.json\n"
    return tmp_path / "src"


def test_known_findings_are_left_out(check: Call, known: Path) -> None:
    answer = check("--baseline", "known.json")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out == "tensafe: nothing found in 2 files; 2 known to known.json\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import torch\n", "import torch\n\n\n# moved\n"),
        ("    x[x > 0].zero_()", "    if x.any():\n        x[x > 0].zero_()"),
        ("x[x > 0].zero_()", "x[x > 0].zero_() "),
        ("def f", "def g():\n    return 1\n\n\ndef f"),
    ],
)
def test_lines_may_move(check: Call, known: Path, old: str, new: str) -> None:
    (known / "b.py").write_text(MASKED.replace(old, new))
    assert check("--baseline", "known.json").status == 0


def test_a_new_one_like_a_known_one_is_told(check: Call, known: Path) -> None:
    line = "    x[x > 0].zero_()\n"
    (known / "b.py").write_text(MASKED.replace(line, line * 2))
    answer = check("--baseline", "known.json", "--format", "grouped")
    assert (answer.status, codes(answer)) == (1, ["src/b.py 7 TS106"])


@pytest.mark.parametrize(("old", "new"), [("def f", "def g"), ("x > 0", "x > 1")])
def test_another_function_or_line_is_another_finding(check: Call, known: Path, old: str, new: str) -> None:
    (known / "b.py").write_text(MASKED.replace(old, new))
    answer = check("--baseline", "known.json")
    assert answer.status == 1
    assert "1 of known.json is gone (TS106 in src/b.py): --write-baseline writes it anew" in answer.out


def test_what_is_gone_is_said(check: Call, known: Path) -> None:
    (known / "b.py").unlink()
    (known / "a.py").write_text("x = 1\n")
    answer = check("--baseline", "known.json")
    assert (answer.status, answer.out) == (
        0,
        "tensafe: nothing found in 1 file; 2 of known.json are gone (TS106 in src/a.py, TS106 in src/b.py): "
        "--write-baseline writes it anew\n",
    )
    summary = json.loads(check("--baseline", "known.json", "--format", "json").out)["summary"]
    assert (summary["baseline_known"], summary["baseline_gone"]) == (0, 2)


def test_only_what_was_looked_at_can_be_gone(check: Call, known: Path) -> None:
    (known / "a.py").write_text("x = 1\n")
    assert "gone" not in check("--baseline", "known.json", "src/b.py").out
    assert "gone" not in check("--baseline", "known.json", "--select", "TS2").out
    assert "gone" in check("--baseline", "known.json", "src/a.py").out


def test_paths_belong_to_the_folder_of_the_file(
    check: Call, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(known)
    assert check("--baseline", "../known.json").status == 0
    paths = [item["path"] for item in json.loads((known.parent / "known.json").read_text())["baseline"]]
    assert paths == ["src/a.py", "src/b.py"]


def test_known_findings_are_not_fixed(check: Call, known: Path) -> None:
    (known / "c.py").write_text(LOST)
    answer = check("--baseline", "known.json", "--fix")
    assert answer.status == 0
    assert answer.out.endswith("1 fixed in 1 file; 2 known to known.json\n")
    assert (known / "a.py").read_text() == LOST


def test_a_fix_does_not_lead_to_known_ones(check: Call, known: Path) -> None:
    line = "    x[x > 0].zero_()\n"
    (known / "b.py").write_text(MASKED.replace(line, line + "    x[x > 1].zero_()\n"))
    answer = check("--baseline", "known.json", "--unsafe-fixes")
    assert answer.out.endswith("1 fixed in 1 file; 2 known to known.json\n")
    assert (known / "b.py").read_text() == MASKED.replace(line, line + "    x[x > 1] = 0\n")


def test_no_source_and_no_baseline_is_overwritten(check: Call, known: Path) -> None:
    answer = check("--baseline", "src/a.py", "--write-baseline")
    assert answer.err == "tensafe: cannot write src/a.py: it is one of the files to check\n"
    assert (known / "a.py").read_text() == LOST
    answer = check("--baseline", "known.json", "--output", "known.json")
    assert answer.err == "tensafe: cannot write known.json: it is the baseline\n"
    assert check("--baseline", "known.json").status == 0


def test_hostile_names_in_it_stay_on_one_line(check: Call, known: Path) -> None:
    (known.parent / "known.json").write_text(COUNTED.format(1))
    assert "(TS106 in a\\n::error::\\x1b)" in check("--baseline", "known.json").out


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "no baseline known.json: add --write-baseline to write it"),
        ("{", "known.json is not a baseline of tensafe: write it anew with --write-baseline"),
        ('{"tool": "tensafe", "version": 1, "baseline": [{}]}', "known.json is not a baseline of tensafe"),
        ('{"tool": "other"}', "known.json is not a baseline of tensafe"),
        ("[" * 100_000, "known.json is not a baseline of tensafe"),
        (COUNTED.format("Infinity"), "known.json is not a baseline of tensafe"),
        (COUNTED.format("-5"), "known.json is not a baseline of tensafe"),
    ],
)
def test_a_baseline_that_cannot_be_read(check: Call, tmp_path: Path, text: str | None, why: str) -> None:
    (tmp_path / "a.py").write_text(LOST)
    if text is not None:
        (tmp_path / "known.json").write_text(text)
    answer = check("--baseline", "known.json")
    assert (answer.status, answer.out, answer.err.startswith(f"tensafe: {why}")) == (2, "", True)


def test_write_baseline_asks_for_a_file(check: Call, tmp_path: Path) -> None:
    assert "--write-baseline goes with --baseline FILE" in check("--write-baseline").err
    answer = check("--write-baseline", "--baseline", "no/folder.json")
    assert answer.err == "tensafe: cannot write no/folder.json: No such file or directory\n"


def test_with_everything_excluded(check: Call, known: Path) -> None:
    (known.parent / "pyproject.toml").write_text('[tool.tensafe]\nexclude = ["src"]\n')
    answer = check("--baseline", "known.json", "--force-exclude", "--output", "o.txt", "src")
    assert (answer.status, answer.err) == (0, "")


def test_standard_input_has_a_baseline_too(check: Call, known: Path) -> None:
    answer = check("-", "--stdin-filename", "src/a.py", "--baseline", "known.json", "--fix", stdin=LOST)
    assert (answer.status, answer.out) == (0, LOST)
    answer = check("-", "--stdin-filename", "src/a.py", "--baseline", "known.json", stdin="x = 1\n")
    assert "1 of known.json is gone (TS106 in src/a.py)" in answer.out
