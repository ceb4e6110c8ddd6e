"""`tensafe check nb.ipynb`: findings by cell, fixes in place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from checking.projects import Call, check
from notebooks.building import MARKDOWN, notebook
from tensafe.findings import from_json

__all__ = ["check"]
CELLS = [
    MARKDOWN,
    ["%matplotlib inline\n", "import torch\n", "x = torch.rand(3)"],
    ["# the mask is a copy\n", "!ls\n", "x[x > 0].zero_()\n", "x"],
    "y = torch.rand(3)\ny[[0, 1]].zero_()",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "look.ipynb"
    path.write_text(notebook(*CELLS, indent=1, ensure_ascii=False) + "\n")
    return path


def test_findings_name_the_cell(check: Call, path: Path) -> None:
    answer = check(".")
    assert "--> look.ipynb:cell 3:3:1\n" in answer.out
    assert "3 | x[x > 0].zero_()\n" in answer.out
    assert "--> look.ipynb:cell 4:2:1\n" in answer.out
    assert answer.out.endswith("tensafe: 2 warnings in look.ipynb; 2 fixable with --fix\n")
    assert answer.status == 1


def test_other_formats_name_file_and_cell(check: Call, path: Path) -> None:
    record = check("--format", "json").out
    place = json.loads(record)["findings"][0]["location"]
    assert (place["path"], place["cell"], place["line"]) == (str(path), 3, 3)
    assert json.loads(record)["findings"][0]["related"][0]["cell"] == 3
    assert from_json(record).findings[0].at.path == f"{path}:cell 3"
    raw = path.read_text().splitlines()
    line = next(number for number, text in enumerate(raw, 1) if '"x[x > 0].zero_()' in text)
    assert f"::warning file=look.ipynb,line={line}," in check("--format", "github").out
    (run,) = json.loads(check("--format", "sarif").out)["runs"]
    where = run["results"][0]["locations"][0]
    assert where["physicalLocation"]["artifactLocation"]["uri"] == "look.ipynb"
    assert where["physicalLocation"]["region"] == {"startLine": line}
    assert where["logicalLocations"][0]["name"] == "cell 3"


def test_fixes_go_into_the_cells(check: Call, path: Path) -> None:
    before = path.read_text()
    answer = check("--diff")
    assert answer.out.startswith("--- a/look.ipynb:cell 3\n+++ b/look.ipynb:cell 3\n@@ -1,4 +1,4 @@\n")
    assert path.read_text() == before
    assert check("--fix").status == 0
    after = before.replace("x[x > 0].zero_()", "x[x > 0] = 0").replace("y[[0, 1]].zero_()", "y[[0, 1]] = 0")
    assert path.read_text() == after
    assert check("--fix").status == 0
    assert path.read_text() == after


def test_an_import_goes_into_a_cell(check: Call, tmp_path: Path) -> None:
    cells = [
        "%%time\n%load_ext x\nimport torch",
        "model = torch.nn.Linear(2, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=1)",
        "best = model.state_dict()\nmodel(torch.ones(2)).sum().backward()\noptimizer.step()\n"
        "model.load_state_dict(best)",
    ]
    path = tmp_path / "a.ipynb"
    path.write_text(notebook(*cells, indent=1))
    assert check("--unsafe-fixes", "--select", "TS102").status == 0
    after = [cell["source"] for cell in json.loads(path.read_text())["cells"]]
    assert after[0] == "%%time\n%load_ext x\nimport copy\nimport torch"
    assert after[2].startswith("best = copy.deepcopy(model.state_dict())\n")


def test_allow_comments(check: Call, path: Path) -> None:
    text = path.read_text().replace("zero_()", "zero_()  # tensafe: allow lost-write")
    path.write_text(text)
    assert check("--unused-allows").out == "tensafe: nothing found in 1 file\n"
    path.write_text(text.replace("y = torch.rand(3)", "y = torch.rand(3)  # tensafe: allow graph-cut"))
    answer = check("--unused-allows", "--format", "grouped")
    assert "look.ipynb:cell 4:\n  1:" in answer.out
    assert check("--unused-allows", "--fix").status == 0
    assert path.read_text() == text


def test_a_broken_cell_is_told(check: Call, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook("x =", "import torch\ntorch.ones(2)[[0]].zero_()"))
    answer = check()
    assert "not checked: a.ipynb:cell 1: not Python, line 1: invalid syntax\n" in answer.out
    assert "a.ipynb:cell 2:2:1" in answer.out
    (tmp_path / "a.ipynb").write_text(notebook("x =", "y ="))
    assert check().status == 0


def test_what_is_no_notebook(check: Call, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text("{")
    answer = check()
    assert answer.status == 2
    assert "not checked: a.ipynb: not a notebook: " in answer.out


def test_settings_mean_the_file(check: Call, path: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tensafe]\nper-file-ignores = {"*.ipynb" = ["TS106"]}\n')
    assert check().status == 0


def test_encodings(check: Call, path: Path) -> None:
    text = path.read_text()
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert check("--fix").status == 0
    assert path.read_bytes()[:4] == b"\xef\xbb\xbf{"
    path.write_bytes(text.replace("mask", "m\xe4sk").encode("latin-1"))
    assert "not checked: look.ipynb: cannot be read: " in check().out
    path.write_bytes(text.encode().replace(b"mask", b"m\0sk"))
    assert "not checked: look.ipynb: cannot be read: it holds NUL bytes" in check().out
