"""`tensafe check`: statuses, formats, fixes in files of any encoding, differences that change nothing."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli.conftest import Answer
from tensafe.findings import from_json

Call = Callable[..., Answer]
pytestmark = pytest.mark.usefixtures("engines")


def test_findings_are_status_1_and_a_clean_folder_0(tensafe: Call, lost: Path) -> None:
    answer = tensafe("check", ".")
    assert (answer.status, answer.err) == (1, "")
    assert answer.out.startswith("error[TS106] lost-write: the write is lost\n --> lost.py:1:1 in f\n")
    assert answer.out.endswith("\ntensafe: 1 error in lost.py; 1 fixable with --fix\n")
    lost.write_text("x = 1\n")
    assert tensafe("check", ".") == Answer(0, "tensafe: nothing found in 1 file\n", "")


def test_the_current_folder_is_the_default(tensafe: Call, lost: Path) -> None:
    assert tensafe("check").status == 1


def test_the_options_reach_the_engine(tensafe: Call, lost: Path, engines: SimpleNamespace) -> None:
    tensafe("check", "--select", "TS1,graph-cut", "--ignore", "TS102", "--jobs", "3", "lost.py")
    ((_, paths, rules, jobs),) = engines.calls
    assert ([str(path) for path in paths], jobs) == (["lost.py"], 3)
    assert {rule.code for rule in rules} >= {"TS106", "TS205"}
    assert "TS102" not in {rule.code for rule in rules}


def test_safe_fixes_only_unless_asked(tensafe: Call, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x[m].zero_()\nx += 1\nprint(x)\n")
    answer = tensafe("check", "a.py")
    assert answer.out.endswith(
        "tensafe: 1 error, 1 warning in a.py; 1 fixable with --fix, 1 more with --unsafe-fixes\n"
    )
    answer = tensafe("check", "--fix", "a.py")
    assert answer.status == 1
    assert answer.out.endswith("tensafe: 1 warning in a.py; 1 fixed in 1 file\n")
    assert path.read_text() == "x[m] = 0\nx += 1\nprint(x)\n"
    assert tensafe("check", "--unsafe-fixes", "a.py").status == 0
    assert path.read_text() == "x[m] = 0\nx = x + 1\nprint(x)\n"


def test_fixing_twice_changes_nothing(tensafe: Call, lost: Path) -> None:
    assert tensafe("check", "--fix", "lost.py").status == 0
    written = lost.stat().st_mtime_ns, lost.read_bytes()
    assert tensafe("check", "--fix", "lost.py").status == 0
    assert (lost.stat().st_mtime_ns, lost.read_bytes()) == written


@pytest.mark.parametrize(
    ("before", "mark", "encoding"),
    [
        ("# é日\r\nx[m].zero_()\r\nprint(x)", b"", "utf-8"),
        ("# é日\nx[m].zero_()  # 日\n", codecs.BOM_UTF8, "utf-8"),
        ("# coding: latin-1\n# é\nx[m].zero_()\r\n", b"", "latin-1"),
        ("# no end of line\nx[m].zero_()", b"", "utf-8"),
    ],
)
def test_every_other_byte_and_the_mode_stay(
    tensafe: Call, tmp_path: Path, before: str, mark: bytes, encoding: str
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(mark + before.encode(encoding))
    path.chmod(0o750)
    assert tensafe("check", "--fix", "a.py").status == 0
    assert path.read_bytes() == mark + before.replace("x[m].zero_()", "x[m] = 0").encode(encoding)
    assert path.stat().st_mode & 0o777 == 0o750


def test_a_difference_changes_nothing(tensafe: Call, lost: Path) -> None:
    before = lost.read_bytes()
    answer = tensafe("check", "--diff", "lost.py")
    assert answer.status == 1
    assert (
        answer.out == "--- a/lost.py\n+++ b/lost.py\n@@ -1,2 +1,2 @@\n-x[m].zero_()\n+x[m] = 0\n print(x)\n"
    )
    assert lost.read_bytes() == before


def test_no_difference_is_status_0(tensafe: Call, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x += 1\nprint(x)\n")
    assert tensafe("check", "--diff", "a.py") == Answer(0, "", "")
    assert tensafe("check", "--diff", "--unsafe-fixes", "a.py").status == 1


def test_a_difference_can_be_applied(tensafe: Call, tmp_path: Path) -> None:
    import shutil
    import subprocess

    if not shutil.which("patch"):
        pytest.skip("no `patch` here")
    path = tmp_path / "a.py"
    path.write_bytes(b"a = 1\nx[m].zero_()\nb = 2")
    answer = tensafe("check", "--diff", "a.py")
    subprocess.run(
        ["patch", "-p1"], cwd=tmp_path, input=answer.out, text=True, check=True, capture_output=True
    )
    assert path.read_bytes() == b"a = 1\nx[m] = 0\nb = 2"


def test_json_goes_to_standard_output_or_a_file(tensafe: Call, lost: Path, tmp_path: Path) -> None:
    answer = tensafe("check", "--format", "json", "lost.py")
    assert (answer.status, answer.err) == (1, "")
    (finding,) = json.loads(answer.out)["findings"]
    assert (finding["name"], finding["location"]["line"], finding["related"][0]["role"]) == (
        "lost-write",
        1,
        "read here",
    )
    answer = tensafe("check", "--format", "json", "--output", "found.json", "lost.py")
    assert answer.out == "tensafe: 1 error in lost.py; written to found.json\n"
    assert from_json((tmp_path / "found.json").read_text()).findings


def test_sarif_names_the_rules(tensafe: Call, lost: Path) -> None:
    (run,) = json.loads(tensafe("check", "--format", "sarif", "lost.py").out)["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert rules[run["results"][0]["ruleIndex"]]["name"] == "lost-write"
    assert all(rule["help"]["markdown"].startswith("# ") for rule in rules)


def test_github_annotates(tensafe: Call, lost: Path) -> None:
    assert tensafe("check", "--format", "github", "lost.py").out.startswith("::error file=lost.py,line=1,")


def test_a_page_shows_the_lines_and_the_fix(tensafe: Call, lost: Path, tmp_path: Path) -> None:
    answer = tensafe("check", "--format", "html", "--output", "found.html", "lost.py")
    assert (answer.status, answer.out) == (1, "tensafe: 1 error in lost.py; written to found.html\n")
    page = (tmp_path / "found.html").read_text()
    assert "<ins>x[m] = 0</ins>" in page
    tensafe("check", "--format", "json", "--output", "found.json", "lost.py")
    again = tensafe("report", "found.json", "--format", "html")
    assert (again.status, again.out) == (1, page)


def test_a_record_is_told_again(tensafe: Call, lost: Path, tmp_path: Path) -> None:
    first = tensafe("check", "lost.py").out
    tensafe("check", "--format", "json", "--output", "found.json", "lost.py")
    again = tensafe("report", "found.json")
    assert again.status == 1
    assert again.out == first.replace("; 1 fixable with --fix", "")
    lost.unlink()
    assert (
        "--> lost.py:1:1 in f: written here (the file cannot be read)" in tensafe("report", "found.json").out
    )
