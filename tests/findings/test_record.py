"""The record to JSON and back, for any content; and what is no record."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensafe.errors import RecordError
from tensafe.findings import (
    AssignThroughIndex,
    Because,
    CallInstead,
    Disallow,
    DropCall,
    Finding,
    Fix,
    Memory,
    NotChecked,
    OutOfPlace,
    Reached,
    Record,
    SetKeyword,
    Severity,
    Site,
    Wrap,
    collapse,
    from_json,
    to_json,
)
from tensafe.findings.source import decode

TEXT = st.text(max_size=8)
NUMBER = st.integers(1, 10**6)
SITES = st.builds(Site, TEXT, NUMBER, NUMBER, NUMBER, st.integers(0, 200), TEXT)
ACTIONS = st.one_of(
    st.builds(Wrap, SITES, TEXT, st.lists(TEXT, max_size=2).map(tuple)),
    st.builds(OutOfPlace, SITES),
    st.builds(AssignThroughIndex, SITES),
    st.builds(CallInstead, SITES, TEXT, st.booleans()),
    st.builds(SetKeyword, SITES, TEXT, TEXT),
    st.builds(DropCall, SITES),
    st.builds(Disallow, SITES, st.lists(TEXT, max_size=2).map(tuple)),
)
INTEGER = st.integers(-(2**63), 2**63 - 1)
REACHED = st.lists(st.tuples(st.integers(0, 2**63 - 1), INTEGER), max_size=3).flatmap(
    lambda dimensions: st.builds(
        Reached,
        TEXT,
        INTEGER,
        st.just(tuple(size for size, _ in dimensions)),
        st.just(tuple(stride for _, stride in dimensions)),
        st.integers(1, 16),
        TEXT,
        TEXT,
    )
)
MEMORIES = st.builds(
    Memory,
    st.integers(0, 2**63 - 1),
    st.lists(REACHED, max_size=2).map(tuple),
    st.sampled_from(["cpu", "cuda:0"]),
)
FIXES = st.none() | st.builds(Fix, ACTIONS, st.booleans(), TEXT)
FINDINGS = st.builds(
    Finding,
    TEXT,
    TEXT,
    SITES,
    st.lists(st.builds(Because, SITES, TEXT, TEXT, st.sampled_from(["", "before", "after"])), max_size=2).map(
        tuple
    ),
    TEXT,
    TEXT,
    st.sampled_from(Severity),
    TEXT,
    FIXES,
    NUMBER,
    st.none() | st.integers(0, 7),
    st.lists(TEXT, max_size=2).map(tuple),
    st.lists(MEMORIES, max_size=2).map(tuple),
)
RECORDS = st.builds(
    Record,
    st.sampled_from(["run", "check"]),
    st.lists(FINDINGS, max_size=3).map(tuple),
    st.lists(st.builds(NotChecked, TEXT, TEXT), max_size=2).map(tuple),
    st.dictionaries(TEXT, st.integers() | st.floats(allow_nan=False) | TEXT, max_size=3),
    TEXT,
)


@given(RECORDS)
def test_there_and_back(record: Record) -> None:
    assert from_json(to_json(record)) == record


@given(st.lists(FINDINGS, max_size=6))
def test_collapse_keeps_order_and_counts(findings: list[Finding]) -> None:
    merged = collapse([*findings, *findings])
    assert sum(item.count for item in merged) == 2 * sum(item.count for item in findings)
    assert len({id(item) for item in merged}) == len(merged) == len(collapse(findings))
    assert collapse(merged) == merged


def broken(**changes: object) -> str:
    finding = Finding("TS1", "m", Site("a", 1), fix=Fix(OutOfPlace(Site("a", 1)), True))
    return json.dumps({**json.loads(to_json(Record("run", (finding,)))), **changes})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        "{",
        broken(version=2),
        broken(tool="ruff"),
        broken(findings=3),
        broken(findings=[{}]),
        broken(findings=None),
        broken(summary=3),
        broken(not_checked=[3]),
    ],
)
def test_what_is_no_record(text: str) -> None:
    with pytest.raises(RecordError) as caught:
        from_json(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("part", ["action", "safe", "title"])
def test_a_fix_that_lacks_a_part(part: str) -> None:
    data = json.loads(broken())
    del data["findings"][0]["fix"][part]
    with pytest.raises(RecordError, match=part):
        from_json(json.dumps(data))


TENSOR: dict[str, object] = {
    "role": "saved",
    "label": "",
    "dtype": "float32",
    "offset": 0,
    "shape": [2],
    "strides": [4],
    "itemsize": 4,
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"shape": [2, 3]},
        {"shape": [-1]},
        {"shape": 2},
        {"shape": [1] * 65, "strides": [4] * 65},
        {"offset": 2**63},
        {"strides": [-(2**63) - 1]},
        {"strides": ["x"]},
        {"itemsize": -4},
        {"offset": None},
        {"offset": float("inf")},
    ],
)
def test_a_memory_that_no_tensor_has(wrong: dict[str, object]) -> None:
    data = json.loads(broken())
    for tensor, refused in ((TENSOR, False), ({**TENSOR, **wrong}, True)):
        data["findings"][0]["memory"] = [{"nbytes": 8, "device": "cpu", "tensors": [tensor]}]
        if refused:
            with pytest.raises(RecordError):
                from_json(json.dumps(data))
        else:
            assert from_json(json.dumps(data)).findings[0].memory[0].tensors[0].extent.stop == 8


def test_a_place_at_an_unknown_time() -> None:
    finding = Finding("TS1", "m", Site("a", 1), (Because(Site("a", 2), "saved here"),))
    data = json.loads(to_json(Record("run", (finding,))))
    data["findings"][0]["related"][0]["when"] = "now"
    with pytest.raises(RecordError, match="now"):
        from_json(json.dumps(data))


def test_findings_that_differ_only_in_where_they_lay_are_one() -> None:
    lay = [Memory(8, (Reached("saved", offset, (1,), (4,), 4),)) for offset in (0, 4)]
    told = [Finding("TS1", "m", Site("a", 1), memory=(one,)) for one in lay]
    (one,) = collapse(told)
    assert (one.count, one.memory) == (2, (lay[0],))


def test_a_fix_of_an_unknown_kind() -> None:
    data = json.loads(broken())
    data["findings"][0]["fix"]["action"]["do"] = "Rewrite"
    with pytest.raises(RecordError, match="unknown fix action 'Rewrite'"):
        from_json(json.dumps(data))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_a_source_gives_its_bytes_back(encoding: str) -> None:
    declared = "# coding: latin-1\r\n" if encoding == "latin-1" else ""
    data = f"{declared}x = 'é'\r\n".encode(encoding)
    text, found = decode(data)
    assert text.endswith("x = 'é'\r\n")
    assert text.encode(found) == data


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"x\0y", b"# coding: klingon\n", b"\x93numpy"])
def test_what_is_no_source(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode(data)


def test_a_fault_that_is_seen_again_with_other_amounts_is_one_finding() -> None:
    site = Site("train.py", 3)
    told = [
        Finding(
            "TS206",
            f"`losses` keeps the graphs of {steps} steps alive: {steps / 2} MB",
            site,
            help=f"{steps}",
        )
        for steps in (3, 40, 1200)
    ]
    (one,) = collapse(told)
    assert (one.message, one.count) == (told[0].message, 3)
    others = [
        Finding("TS206", "`layer1` keeps 3 steps", site),
        Finding("TS206", "`layer2` keeps 4 steps", site),
    ]
    assert len(collapse(others)) == 2
    places = [Finding("TS206", "3 steps", site), Finding("TS206", "3 steps", Site("train.py", 4))]
    assert len(collapse(places)) == 2
