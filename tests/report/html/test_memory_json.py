"""A memory map as JSON and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.html import samples
from tensafe.errors import RecordError
from tensafe.memory.map import MemoryMap
from tensafe.report.memory_json import from_json, to_json


@given(samples.maps())
def test_a_map_comes_back_equal(memory: MemoryMap) -> None:
    text = to_json(memory)
    assert text.isascii()
    assert from_json(text) == memory
    assert to_json(from_json(text)) == text


def test_what_programs_read_is_there() -> None:
    data = json.loads(to_json(samples.of_every_sort()))
    assert data["version"] == 1
    assert data["totals"]["tensors"] == 15
    assert data["totals"]["shared_nbytes"] == 4 * 2**20
    assert data["totals"]["exact"] is True
    assert ["fc.weight", "head.weight"] in data["ties"]
    mapped = next(one for one in data["storages"] if one["label"] == "storage 2")
    assert mapped["dead_nbytes"] == 3 * 2**20 - 1_024
    rows = next(one for one in data["storages"][1]["tensors"] if "rows" in one["names"])
    assert (rows["offset_bytes"], rows["nbytes"], rows["strides"]) == (40_960, 40_960, [1024, 1])
    assert rows["extent"]["strides_bytes"] == [4096, 4]


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data.pop("storages"), "`storages` is missing"),
        (lambda data: data.update(version=2), "version 2 is not 1"),
        (lambda data: data.update(version="x" * 999), "version"),
        (lambda data: data.update(kind="run"), 'no `"tool"'),
        (lambda data: data.update(storages=3), "`storages` is 3 where a list belongs"),
        (lambda data: data.update(storages=[[]]), "`storages[0]` is [] where an object belongs"),
        (lambda data: data.update(facts={"a\nb": 1}), 'facts["a\\nb"]'),
        (lambda data: data["storages"][0].update(nbytes=-1), "storages[0].nbytes"),
        (lambda data: data["storages"][0].update(nbytes=True), "true where an integer"),
        (lambda data: data["storages"][0].update(nbytes=1.5), "1.5 where an integer"),
        (lambda data: data["storages"][0]["tensors"][0].update(names=[]), "at least one name"),
        (lambda data: data["storages"][0]["tensors"][0].update(names=[7]), "tensors[0].names[0]"),
        (lambda data: data["storages"][0]["tensors"][0].update(shape="3"), "tensors[0].shape"),
        (lambda data: data["storages"][0]["tensors"][0]["extent"].update(shape=[1, 1]), "2 strides"),
        (lambda data: data["storages"][0]["tensors"][0].update(extent=None), "null where an object"),
    ],
)
def test_a_damaged_record_is_told_in_one_line(change: Change, words: str) -> None:
    data = json.loads(to_json(samples.of_every_sort()))
    change(data)
    with pytest.raises(RecordError) as caught:
        from_json(json.dumps(data))
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert len(message) < 200


OTHERS = ["", "{", "null", "3", "[]", "[" * 100_000, "1" * 5_000, '{"tool": "tensafe"}', '"\\ud800"', "NaN"]


@pytest.mark.parametrize("text", OTHERS)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(RecordError, match="not a tensafe memory map"):
        from_json(text)


@given(st.data())
def test_no_change_of_a_value_gives_a_traceback(data: st.DataObject) -> None:
    record = json.loads(to_json(MemoryMap("one", (samples.interleaved(),))))
    place: Any = record
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(st.none() | st.integers() | st.floats() | st.text() | st.lists(st.integers()))
    with suppress(RecordError):
        assert isinstance(from_json(json.dumps(record)), MemoryMap)
