"""Every operation that torch has samples for is run, in every spelling, and compared with its row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ops.conftest import WANTED, needs_the_same_torch
from ops.oracle import Tally, differences
from tensafe.ops.from_torch.call import Call
from tensafe.ops.from_torch.running import by_spelling, runs
from tensafe.ops.row import OLD, Facts, Graph, Result, Row
from tensafe.ops.stored import stored

# Spellings in torch's list that are no operation of their own: the in-place flag of a Python function,
# and a private function.
WITHOUT_A_ROW = {"x.dropout2d_", "x.dropout3d_", "torch._segment_reduce"}
# Public spellings that a CPU can run and that nothing here runs, so that only their schemas speak.
FEWEST_ROWS_RUN = 880

Differences = dict[tuple[str, str], set[str]]


def compare(calls: list[Call], rows: dict[str, Row]) -> tuple[Differences, Tally, int]:
    """What differs, by row and spelling; what was seen; how many calls were made."""
    found: Differences = {}
    tally, count = Tally(), 0
    for call, row, overload, seen in runs(calls, rows):
        count += 1
        if not call.out:
            tally.add(row, seen)
        for one in differences(row, overload, seen, call.out):
            found.setdefault((row.name, call.spelling), set()).add(one)
    return found, tally, count


@pytest.fixture(scope="module")
def compared(wanted: list[Call]) -> tuple[Differences, Tally, int]:
    return compare(wanted, {row.name: row for row in stored().rows()})


@needs_the_same_torch
def test_no_call_does_what_the_table_does_not_say(
    compared: tuple[Differences, Tally, int], capsys: pytest.CaptureFixture[str]
) -> None:
    found, tally, count = compared
    with capsys.disabled():
        print(
            f"\n{count} calls of {len(tally.calls)} operations compared (samples: {WANTED}), "
            f"{len(found)} differ"
        )
    assert not found, "\n".join(
        f"{row} as {spelling}: {what}" for (row, spelling), what in sorted(found.items())
    )


@needs_the_same_torch
def test_most_rows_are_run(compared: tuple[Differences, Tally, int]) -> None:
    assert len(compared[1].calls) >= FEWEST_ROWS_RUN


@needs_the_same_torch
def test_every_call_has_a_row(few: list[Call]) -> None:
    index = by_spelling(stored().rows())
    assert {call.spelling for call in few} - set(index) <= WITHOUT_A_ROW


@needs_the_same_torch
def test_what_the_table_says_is_kept_was_kept_by_some_call(compared: tuple[Differences, Tally, int]) -> None:
    tally = compared[1]
    unseen = {}
    for name in tally.calls:
        row = stored()[name]
        learned = any(facts.seen for facts in row.groups)  # from every sample, of which this run may have few
        if Graph.KEPT in tally.graphs[name] and row.kind != "form" and (WANTED == "all" or not learned):
            never = [one for one in row.saves if not one.startswith(OLD) and not _kept(one, row, tally)]
            unseen |= {name: never} if never else {}
    assert not unseen


def _kept(name: str, row: Row, tally: Tally) -> bool:
    """A named result goes by its place, too."""
    places = {
        f"result{place}" for facts in row.groups for place, one in enumerate(facts.results) if one == name
    }
    return bool({name, *places, *(["result0"] if name == "result" else [])} & tally.saved[row.name])


@needs_the_same_torch
def test_what_the_table_says_is_written_was_written_by_some_call(
    compared: tuple[Differences, Tally, int],
) -> None:
    tally = compared[1]
    unseen = {
        name: sorted(set(stored()[name].writes) - tally.written[name])
        for name in tally.calls
        if set(stored()[name].writes) - tally.written[name] and not stored()[name].groups[0].writes_when
    }
    assert not unseen


@needs_the_same_torch
def test_what_is_a_view_or_a_copy_was_seen_as_both(compared: tuple[Differences, Tally, int]) -> None:
    tally = compared[1]
    one_sided = {
        name: tally.shared[name]
        for name in tally.calls
        if stored()[name].gives is Result.EITHER and len(tally.shared[name]) < 2 and name not in ONE_SIDED
    }
    assert not one_sided


ONE_SIDED = {
    "x.cpu()": "a copy needs a second device",
    "sparse_csr_tensor": "the index tensors are right in any whole number type, and always shared",
}

WRONG = [
    ("add", {"gives": Result.VIEW, "of": ("self",)}, "memory of its own"),
    ("t", {"gives": Result.COPY, "of": ()}, "shares memory"),
    ("reshape", {"gives": Result.COPY, "of": ()}, "shares memory"),
    ("contiguous", {"gives": Result.VIEW}, "memory of its own"),
    ("zero_", {"writes": (), "of": ()}, "writes"),
    ("add_", {"gives": Result.COPY, "of": ()}, "shares memory"),
    ("batch_norm", {"writes": ()}, "writes"),
    ("detach", {"graph": Graph.KEPT}, "graph is cut"),
    ("mul", {"graph": Graph.CUT}, "graph is kept"),
    ("floor_divide", {"graph": Graph.KEPT}, "graph is refused"),
    ("exp", {"saves": ()}, "keeps"),
    ("sigmoid", {"saves": (("self", ("self",)),)}, "keeps"),
    ("layer_norm", {"saves": (("any", ("input",)),)}, "keeps"),
    ("sin_", {"saves": ()}, "keeps"),
    ("item", {"gives": Result.NOTHING}, None),
    ("sum", {"gives": Result.VALUE}, "tensors"),
    ("x[key]", {"gives": Result.COPY, "of": ()}, "shares memory"),
    ("x.float()", {"gives": Result.VIEW}, "memory of its own"),
    ("F.normalize", {"saves": ()}, "keeps"),
]


@needs_the_same_torch
@pytest.mark.parametrize(("name", "change", "words"), WRONG, ids=[name for name, _, _ in WRONG])
def test_a_wrong_row_is_seen(
    name: str, change: dict[str, object], words: str | None, few: list[Call]
) -> None:
    rows = {row.name: row for row in stored().rows()}
    index = by_spelling(rows.values())
    calls = [call for call in few if index.get(call.spelling) == name]
    right, _, count = compare(calls, rows)
    assert count
    assert not right
    wrong = {**rows, name: _changed(rows[name], change)}
    found = {one for what in compare(calls, wrong)[0].values() for one in what}
    assert words is None or any(words in one for one in found), found


def _changed(row: Row, change: dict[str, object]) -> Row:
    groups = tuple(replace(facts, **change) for facts in row.groups)  # type: ignore[arg-type]
    return replace(row, groups=groups)


def test_a_call_that_torch_refuses_is_no_difference() -> None:
    row = Row(name="f", groups=(Facts(),))
    refused = Call("f", "torch.f", _refuses, (), {}, None)  # type: ignore[arg-type]
    assert not list(runs([refused], {"f": replace(row, spelled=("torch.f",))}))


def _refuses() -> None:
    raise RuntimeError("not for these arguments")
