"""The stored table: equal to what this torch gives, read a row at a time, without torch."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.conftest import needs_the_same_torch
from tensafe.ops.row import Facts, Graph, Result, Row, row_from, to_data
from tensafe.ops.stored import PATH, Stored, stored, written

NAMES = st.lists(st.text(min_size=1, max_size=6), max_size=3).map(tuple)
FACTS = st.builds(
    Facts,
    overloads=NAMES,
    arguments=NAMES,
    results=NAMES,
    gives=st.sampled_from(Result),
    of=NAMES,
    when=st.text(max_size=9),
    writes=NAMES,
    graph=st.sampled_from(Graph),
    saves=st.lists(st.tuples(st.text(max_size=3), NAMES), max_size=2, unique_by=lambda one: one[0]).map(
        tuple
    ),
    seen=st.booleans(),
)
ROWS = st.builds(
    Row,
    name=st.text("abcxyz_.[]=", min_size=1, max_size=9),
    kind=st.sampled_from(["aten", "python", "copy"]),
    groups=st.lists(FACTS, max_size=3).map(tuple),
    spelled=NAMES,
    note=st.text(max_size=9),
)


@needs_the_same_torch
def test_the_stored_table_is_what_this_torch_gives(fresh_rows: dict[str, Row]) -> None:
    table = stored()
    again = "run `python -m tensafe.ops.from_torch`"
    assert set(fresh_rows) == set(table), again
    other = [name for name, row in fresh_rows.items() if table[name] != row]
    assert not other, f"{len(other)} rows differ, {again}: {other[:5]}"
    assert written(fresh_rows.values(), table.torch_version) == PATH.read_text(encoding="utf-8"), again


def test_the_file_is_sorted_json_with_a_row_on_a_line() -> None:
    text = PATH.read_text(encoding="utf-8")
    data = json.loads(text)
    assert list(data["rows"]) == sorted(data["rows"])
    assert len(text.splitlines()) == len(data["rows"]) + 2


def test_every_line_read_by_itself_is_the_row_that_json_reads() -> None:
    data = json.loads(PATH.read_text(encoding="utf-8"))["rows"]
    table = stored()
    assert {name: table.data(name) for name in table} == data


@given(st.lists(ROWS, max_size=4, unique_by=lambda row: row.name))
def test_rows_come_back_as_they_were_written(rows: list[Row]) -> None:
    table = Stored(written(rows, "2.13.0"))
    assert sorted(table.rows(), key=lambda row: row.name) == sorted(rows, key=lambda row: row.name)
    assert table.torch_version == "2.13.0"


@given(ROWS)
def test_a_row_keeps_everything_as_plain_data(row: Row) -> None:
    assert row_from(row.name, json.loads(json.dumps(to_data(row)))) == row


def test_an_operation_that_is_called_copy_keeps_its_name() -> None:
    assert to_data(Row(name="copy"))["name"] == "copy"
    assert stored()["copy"].name == "copy"


def test_overloads_that_differ_are_told_together() -> None:
    row = Row(
        name="f",
        groups=(
            Facts(gives=Result.VIEW, of=("a",), saves=(("a", ("a",)),)),
            Facts(gives=Result.COPY, writes=("b",), graph=Graph.CUT, saves=(("b", ("a", "result")),)),
        ),
    )
    assert (row.gives, row.graph) == (Result.EITHER, Graph.EITHER)
    assert (row.of, row.writes, row.saves) == (("a",), ("b",), ("a", "result"))


def test_a_name_without_a_row_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        stored()["no_such_operation"]


def test_reading_the_table_imports_neither_torch_nor_numpy() -> None:
    code = (
        "import sys; from tensafe.ops.stored import stored; stored().rows(); "
        "from tensafe.ops import OPS; print({'torch', 'numpy', 'torchgen'} & set(sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"
