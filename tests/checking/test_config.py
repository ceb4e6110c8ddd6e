"""`[tool.tensafe]`: found upwards, validated in one line, and weaker than the command line."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest

from checking.projects import LOST, Call, check, codes
from tensafe.checking.globs import matches

__all__ = ["check"]


def settings(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.tensafe]\n{text}\n")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("src/pkg", "tests"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.py").write_text(LOST)
    return tmp_path


BOTH = ["src/pkg/a.py 4 TS106", "tests/a.py 4 TS106"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", BOTH),
        ('select = ["TS2"]', []),
        ('select = ["lost-write"]', BOTH),
        ('ignore = ["TS106"]', []),
        ('per-file-ignores = {"tests/*" = ["TS1"]}', BOTH[:1]),
        ('per-file-ignores = {"a.py" = ["lost-write"]}', []),
        ('per-file-ignores = {"tests/*" = ["TS2"]}', BOTH),
        ('exclude = ["tests"]', BOTH[:1]),
        ('exclude = ["src/**/a.py", "nowhere"]', BOTH[1:]),
        ('severity = {lost-write = "off"}', []),
        ('severity = {TS106 = "notice"}', []),
    ],
)
def test_what_a_project_asks(check: Call, project: Path, text: str, found: list[str]) -> None:
    settings(project, text)
    answer = check("--format", "grouped")
    assert codes(answer) == found, answer
    assert answer.status == (1 if found else 0)


def test_severity(check: Call, project: Path) -> None:
    settings(project, 'severity = {lost-write = "error"}')
    assert "error    TS106" in check("--format", "grouped", "src").out
    settings(project, 'severity = {lost-write = "notice"}')
    answer = check("--format", "grouped", "--notices", "src")
    assert ("notice   TS106" in answer.out, answer.status) == (True, 0)


def test_the_command_line_wins(check: Call, project: Path) -> None:
    settings(project, 'select = ["TS2"]\nignore = ["TS106"]\nseverity = {TS106 = "off"}')
    assert codes(check("--format", "grouped")) == []
    assert codes(check("--format", "grouped", "--select", "TS1")) == BOTH
    assert codes(check("--format", "grouped", "--select", "TS1", "--ignore", "TS106")) == []
    assert codes(check("--format", "grouped", "--isolated")) == BOTH
    (project / "other.toml").write_text("")
    assert codes(check("--format", "grouped", "--config", "other.toml")) == BOTH


def test_ignore_adds_to_the_file(check: Call, project: Path) -> None:
    settings(project, 'ignore = ["TS2"]')
    assert codes(check("--format", "grouped", "--ignore", "TS1")) == []


def test_found_upwards_from_each_path(check: Call, project: Path) -> None:
    settings(project, 'ignore = ["TS106"]')
    settings(project / "src", 'select = ["TS106"]')
    (project / "src/pkg/pyproject.toml").write_text('[tool.other]\nname = "not ours"\n')
    assert codes(check("--format", "grouped", "src/pkg/a.py", "tests")) == BOTH[:1]


def test_a_named_file_is_checked_though_excluded(check: Call, project: Path) -> None:
    settings(project, 'exclude = ["tests"]')
    assert codes(check("--format", "grouped", "tests/a.py")) == BOTH[1:]
    answer = check("--format", "grouped", "--force-exclude", "tests/a.py", "tests")
    assert (answer.status, answer.out) == (0, "tensafe: nothing found in 0 files\n")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("selct = []", "[tool.tensafe] has no key 'selct': did you mean select?"),
        ("zzz = []", "[tool.tensafe] has no key 'zzz': there are select, ignore,"),
        ("select = []", "[tool.tensafe] select selects no rule"),
        ('select = "TS1"', "[tool.tensafe] select must be a list of strings"),
        ('ignore = ["TS1", 2]', "[tool.tensafe] ignore must be a list of strings"),
        ('ignore = ["lost-writes"]', "[tool.tensafe] ignore: no rule is called 'lost-writes': did you mean"),
        ("per-file-ignores = []", "[tool.tensafe] per-file-ignores must be a table"),
        ('per-file-ignores = {"a" = ["no"]}', "[tool.tensafe] per-file-ignores: no rule is called 'no'"),
        ('severity = {TS106 = "loud"}', "[tool.tensafe] severity must be a table with the values error,"),
        ('severity = {no = "off"}', "[tool.tensafe] severity: no rule is called 'no'"),
        ("unused-allows = 1", "[tool.tensafe] unused-allows must be true or false"),
        (
            'exclude = ["a", "[z-a].py"]',
            "[tool.tensafe] exclude has the pattern '[z-a].py': bad character range",
        ),
        ('per-file-ignores = {"[b-a]" = ["TS1"]}', "[tool.tensafe] per-file-ignores has the pattern '[b-a]'"),
        ("select = [", "not TOML: "),
        ("select = " + "[" * 5_000, "not TOML that can be read: nested too deeply"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(check: Call, project: Path, text: str, why: str) -> None:
    settings(project, text)
    answer = check("src")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"tensafe: {project / 'pyproject.toml'}: {why}")
    assert answer.err.count("\n") == 1


def test_a_byte_order_mark(check: Call, project: Path) -> None:
    (project / "pyproject.toml").write_text('\ufeff[tool.tensafe]\r\nignore = ["TS106"]\r\n')
    assert check("--format", "grouped").status == 0


def test_a_helper_that_is_excluded_is_neither_told_nor_fixed(check: Call, project: Path) -> None:
    helper = "import torch\n\n\ndef wipe(x):\n    h = torch.relu(x)\n    h += 1\n    return h\n"
    (project / "src/theirs.py").write_text(helper)
    (project / "src/ours.py").write_text(
        "import torch\nfrom theirs import wipe\n"
        "w = torch.ones(3, requires_grad=True)\nwipe(w).sum().backward()\n"
    )
    assert codes(check("--format", "grouped", "src/ours.py")) == ["src/theirs.py 6 TS201"]
    settings(project, 'exclude = ["theirs.py"]')
    assert codes(check("--format", "grouped", "src/ours.py")) == []
    assert codes(check("--format", "grouped", "src/ours.py", "src/theirs.py")) == ["src/theirs.py 6 TS201"]
    check("--unsafe-fixes", "src")
    assert (project / "src/theirs.py").read_text() == helper


def test_another_tools_broken_file_is_not_ours(check: Call, project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.other\n")
    assert codes(check("--format", "grouped")) == BOTH


def test_no_rule_left(check: Call, project: Path) -> None:
    settings(project, 'ignore = ["TS"]')
    answer = check("src")
    assert answer.err == (
        f"tensafe: {project / 'pyproject.toml'} and the options leave no rule; `tensafe rules` lists them\n"
    )


@pytest.mark.parametrize(
    ("pattern", "paths", "others"),
    [
        ("tests", ["tests/a.py", "src/tests/a.py"], ["src/a.py", "src/mytests/a.py"]),
        ("tests/", ["tests/a.py"], ["src/a.py"]),
        ("tests/*", ["tests/a.py", "tests/deep/a.py"], ["src/tests/a.py"]),
        ("./tests/*", ["tests/a.py"], []),
        ("**/tests/*", ["tests/a.py", "src/tests/b.py"], ["tests"]),
        ("src/**", ["src/a/b.py"], ["source/a.py"]),
        ("*_pb2.py", ["a/x_pb2.py"], ["a/x_pb2.pyi"]),
        ("src/?.py", ["src/a.py"], ["src/ab.py"]),
        ("[!a].py", ["b.py"], ["a.py"]),
        ("[a-c].py", ["b.py"], ["d.py", "-.py"]),
        ("a+(b).py", ["a+(b).py"], ["aab.py"]),
        ("[[&&~~||].py", ["[.py", "&.py"], ["a.py"]),
        ("[\\\\].py", ["\\.py"], ["a.py"]),
        ("[!].py", ["[!].py"], ["a.py"]),
    ],
)
def test_patterns(pattern: str, paths: list[str], others: list[str]) -> None:
    assert [path for path in [*paths, *others] if matches(PurePath(path), pattern)] == paths
