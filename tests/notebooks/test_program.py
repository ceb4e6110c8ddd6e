"""Cells as one program: magics blanked, lines mapped both ways, every other byte of the file kept."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebooks.building import MARKDOWN, notebook
from tensafe.notebooks import NotebookError, Program, read
from tensafe.notebooks.json_spans import Spot, spots
from tensafe.notebooks.magics import magic_lines


def program(*cells: object) -> Program:
    return Program(read(notebook(*cells, indent=1)))


def test_cells_follow_each_other_and_lines_lead_back() -> None:
    whole = program(MARKDOWN, "import torch\nx = 1", "", ["y = x\n", "z = y"])
    lines = whole.text.splitlines()
    ast.parse(whole.text)
    assert {
        line: whole.place(lines.index(line) + 1) for line in ("import torch", "x = 1", "y = x", "z = y")
    } == {
        "import torch": (2, 1),
        "x = 1": (2, 2),
        "y = x": (4, 1),
        "z = y": (4, 2),
    }
    for number, line in enumerate(lines, 1):
        cell, inside = whole.place(number)
        assert whole.line(cell, inside) == number or line.startswith("# tensafe: cell")


@pytest.mark.parametrize(
    ("cell", "lines"),
    [
        ("%matplotlib inline\nx = 1", [1]),
        ("x = 1\n!ls -l", [2]),
        ("if x:\n    !ls\n    y = 1", [2]),
        ("!pip install \\\n  torch \\\n  numpy\nx = 1", [1, 2, 3]),
        ("files = !ls\nx = 1", [1]),
        ("a = %timeit -o f()", [1]),
        ("?print\nprint?\nprint??", [1, 2, 3]),
        ("%%time\nx = 1", [1]),
        ("!ls\nx = (a\n    % b)\ny = '''\n%d\n!ls\n'''", [1]),
        ("!ls\nx = [\n  '(',  # (\n  1 % 2,\n]\n%cd ..", [1, 6]),
        ("!ls\ns = 'really?'\n# why?", [1]),
    ],
)
def test_magics(cell: str, lines: list[int]) -> None:
    assert [number for number, _ in magic_lines(cell)] == lines
    whole = program(cell)
    ast.parse(whole.text)
    assert not whole.broken
    assert whole.text.count("\n") == cell.count("\n") + 2
    assert whole.cells_of(whole.text) == {1: cell}


@pytest.mark.parametrize(
    "cell", ["x = (a\n    % b)", 's = """\n!ls\n%%bash\n"""', "x = 7 \\\n% 4", "await f()"]
)
def test_python_is_left_alone(cell: str) -> None:
    assert cell in program(cell).text


@pytest.mark.parametrize("magic", ["%%time", "%%capture out", "%%tensafe --select TS1"])
def test_a_cell_of_python_under_a_magic(magic: str) -> None:
    assert program(f"{magic}\nx = 1").text.endswith("\nx = 1\n")


@pytest.mark.parametrize("cell", ["%%bash\nls | wc", "%%html\n<b>", "\n%%writefile a.py\nx = 1"])
def test_cells_in_other_languages_are_left_out(cell: str) -> None:
    whole = program("x = 1", cell, "y = x")
    assert whole.broken == []
    assert [line for line in whole.text.splitlines() if line and not line.startswith("#")] == [
        "x = 1",
        "y = x",
    ]
    assert whole.cells_of(whole.text) == {1: "x = 1", 2: cell, 3: "y = x"}


def test_a_cell_that_is_no_python_is_told_and_the_others_go_on() -> None:
    whole = program("x = 1", "for in:\n", "y = x")
    (broken,) = whole.broken
    assert (broken.number, broken.why) == (2, "not Python, line 1: invalid syntax")
    assert whole.place(whole.text.splitlines().index("y = x") + 1) == (3, 1)


def test_a_mark_in_the_text_is_no_mark() -> None:
    cell = "# tensafe: cell 7\nx = 1"
    whole = program(cell, "y = 1")
    assert whole.cells_of(whole.text) == {1: cell, 2: "y = 1"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a notebook: "),
        ("[]", "not a notebook: no cells"),
        ('{"worksheets": []}', "a notebook of format 3"),
        ('{"cells": [], "metadata": {"kernelspec": {"language": "julia"}}}', "a notebook in julia"),
    ],
)
def test_what_is_no_notebook(text: str, why: str) -> None:
    with pytest.raises(NotebookError, match=why):
        read(text)


@pytest.mark.parametrize(
    "options",
    [
        {"indent": 1, "ensure_ascii": False},
        {"indent": 1},
        {"indent": "\t", "ensure_ascii": False},
        {},
        {"separators": (",", ":")},
    ],
)
@pytest.mark.parametrize("source", [["a = 1\n", "é = 2\n", "b = 3"], "a = 1\né = 2\nb = 3", ["é = 2"]])
def test_only_the_changed_lines_change(source: object, options: dict[str, Any]) -> None:
    before = notebook(MARKDOWN, source, "last", **options)
    text = "".join(source)  # type: ignore[arg-type]
    after = text.replace("é = 2", "é = 2  # ü\nc = 4")
    expected = after.splitlines(keepends=True) if isinstance(source, list) else after
    assert read(before).rewritten({2: after}) == notebook(MARKDOWN, expected, "last", **options)


def test_every_other_byte_stays() -> None:
    before = (
        '{"cells":[ {"cell_type": "code", "source" : [ "a\\u00e9\\n" ,\r\n  "b\\/c" ] , "x": 1e3 },\n'
        '\t{"source":"y", "cell_type":"code", "outputs":[{"data":"\\ud83d"}]}] }\n\n'
    )
    notebook = read(before)
    assert notebook.rewritten({1: "aé\nb/c", 2: "y"}) == before
    assert notebook.rewritten({1: "aé\nnew\nb/c"}) == before.replace(
        ' ,\r\n  "b', ' ,\r\n  "new\\n" ,\r\n  "b'
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values, st.sampled_from([None, 0, 1, "\t"]), st.booleans())
def test_spots_are_where_the_values_are(value: object, indent: object, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)  # type: ignore[arg-type]
    assert_spot(text, spots(text), value)


def assert_spot(text: str, spot: Spot, value: object) -> None:
    assert json.loads(text[spot.start : spot.end]) == value
    if isinstance(value, list):
        for item, inner in zip(value, spot.items, strict=True):
            assert_spot(text, inner, item)
    if isinstance(value, dict):
        assert list(spot.members) == list(value)
        for key, inner in spot.members.items():
            assert_spot(text, inner, value[key])


@given(st.lists(st.text(alphabet="x=1\n #'\"%!?()\\\r", max_size=40), max_size=4))
def test_any_cells_come_back_as_they_were(cells: list[str]) -> None:
    whole = program(*cells)
    ast.parse(whole.text)
    assert whole.cells_of(whole.text) == dict(enumerate(cells, 1))
    assert whole.notebook.rewritten(whole.cells_of(whole.text)) == whole.notebook.text
