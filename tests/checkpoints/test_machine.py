"""The symbolic machine against `pickle` itself, which executes what it reads."""

from __future__ import annotations

import io
import pickle
import pickletools
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensafe.checkpoints.content import InMemory
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.pickled.edits import edited, edits_of
from tensafe.checkpoints.pickled.inline import bytes_of
from tensafe.checkpoints.pickled.machine import Machine
from tensafe.checkpoints.pickled.pickles import Pickle, read_pickle
from tensafe.checkpoints.pickled.stream import Stream
from tensafe.checkpoints.pickled.values import Dict, List, Made, Payload, Tuple, Value

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.binary(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=5)
        | st.dictionaries(st.text(max_size=8), inner, max_size=5).map(OrderedDict)
    ),
    max_leaves=25,
)


def read(data: bytes) -> Pickle:
    return read_pickle(InMemory(data, "a.pkl"))


def built(value: Value, found: Pickle) -> Any:
    """What the symbols stand for, for objects of the plain kinds."""
    content = bytes_of(value, found) if isinstance(value, (Made, Payload)) and is_bytes(value) else None
    if content is not None:
        return content.read_at(0, content.nbytes)
    if isinstance(value, Payload):
        return found.content.read_at(value.start, value.nbytes).decode(value.encoding, "surrogatepass")
    if isinstance(value, Tuple):
        return tuple(built(item, found) for item in value.items)
    if isinstance(value, List):
        return [built(item, found) for item in value.items]
    if isinstance(value, Dict):
        return {built(key, found): built(item, found) for key, item in value.pairs()}
    if isinstance(value, Made):
        assert value.name == "collections.OrderedDict"
        return built(value.entries or Dict([]), found)
    return value


def is_bytes(value: Made | Payload) -> bool:
    if isinstance(value, Payload):
        return value.encoding == "raw"
    return value.name in ("_codecs.encode", "builtins.bytes")


@given(plain, st.sampled_from(PROTOCOLS))
def test_symbols_stand_for_what_pickle_builds(value: Any, protocol: int) -> None:
    found = read(pickle.dumps(value, protocol))
    assert built(found.result, found) == value


def test_every_instruction_of_pickle_has_a_step() -> None:
    machine = Machine(Stream(InMemory(b"", "none")))
    for opcode in pickletools.opcodes:
        assert callable(machine._step(opcode.name)), opcode.name


def test_long_texts_and_bytes_are_passed_over_unread() -> None:
    class Counted(InMemory):
        taken = 0

        def read_at(self, offset: int, nbytes: int) -> bytes:
            self.taken += nbytes
            return super().read_at(offset, nbytes)

    content = Counted(pickle.dumps([b"x" * 50_000_000, "y" * 50_000_000, 1], 4), "large")
    result = read_pickle(content).result
    assert isinstance(result, List)
    assert [item.nbytes for item in result.items[:2]] == [50_000_000] * 2  # type: ignore[attr-defined]
    assert content.taken < 500_000


def test_nested_a_hundred_thousand_deep() -> None:
    data = b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."
    found = read(data)
    depth, value = 0, found.result
    while isinstance(value, List) and value.items:
        depth, value = depth + 1, value.items[0]
    assert depth == 99_999
    del found, value


def test_a_value_that_holds_itself() -> None:
    value: list[Any] = []
    value.append(value)
    for protocol in PROTOCOLS:
        result = read(pickle.dumps(value, protocol)).result
        assert isinstance(result, List)
        assert result.items == [result]


def test_several_pickles_in_a_row_end_where_pickle_ends() -> None:
    file = io.BytesIO()
    ends = []
    for protocol in PROTOCOLS:
        pickle.dump({"protocol": protocol, "list": [1, 2]}, file, protocol)
        ends.append(file.tell())
    content, start = InMemory(file.getvalue(), "row"), 0
    for end in ends:
        found = read_pickle(content, start)
        assert (found.start, found.stop) == (start, end)
        start = end


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=20), st.sampled_from(PROTOCOLS), st.data())
def test_an_edit_changes_the_numbers_and_nothing_else(
    values: list[int], protocol: int, data: st.DataObject
) -> None:
    wanted = data.draw(st.lists(st.integers(0, 2**40), min_size=len(values), max_size=len(values)))
    found = read(pickle.dumps(("before" * 20, tuple(values), b"behind"), protocol))
    assert isinstance(found.result, Tuple)
    within = found.result.items[1]
    assert isinstance(within, Tuple)
    edits = edits_of(found, dict(zip(within.places, wanted, strict=True)))
    changed = b"".join(edited(found.content, 0, found.content.nbytes, edits))
    assert pickle.loads(changed) == ("before" * 20, tuple(wanted), b"behind")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "there is no pickle"),
        (b"\x80\x02K", "byte 3: the pickle ends in the middle"),
        (b"\x80\x02h\x05.", "byte 2: the memo has no entry 5"),
        (b"\x80\x02\x86.", "byte 2: TUPLE2 needs 2 values, there are 0"),
        (b"\x80\x02K\x01(\x86.", "byte 5: TUPLE2 needs 2 values, there are 0"),
        (b"\x80\x02t.", "byte 2: TUPLE needs a MARK"),
        (b"\x80\x09.", "pickle protocol 9, the newest is 5"),
        (b"\x80\x02\xff.", "byte 2: no pickle instruction is numbered 0xff"),
        (b"\x80\x02T\xff\xff\xff\xff.", "a negative length, -1"),
        (b"\x80\x02\x8b\xff\xff\xff\xff.", "a number of -1 bytes"),
        (b"\x80\x02\x8b\xff\xff\xff\x7f.", "a number of 2,147,483,647 bytes"),
        (
            b"\x80\x04\x8e" + b"\xff" * 8 + b".",
            "18,446,744,073,709,551,615 bytes were expected here, 1 are left",
        ),
        (b"\x80\x04X\xff\xff\xff\x7f.", "2,147,483,647 bytes were expected here"),
        (b"\x80\x04\x95" + b"\xff" * 8 + b".", "a frame of 18,446,744,073,709,551,615 bytes"),
        (b"p-3\n.", "needs 1 values, there are 0"),
        (b"Np-3\n.", "a memo entry of a negative number"),
        (b"Iabc\n.", "a decimal number was expected, there is b'abc'"),
        (b"(K\x01d.", "a dict with a key that has no value"),
        (b"S'abc\n.", "a string in quotes was expected"),
    ],
)
def test_a_wrong_instruction_is_named_with_its_place(data: bytes, words: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        read(data)
    assert words in str(caught.value)
    assert str(caught.value).startswith("a.pkl: ")
    assert "\n" not in str(caught.value)
    with pytest.raises(Exception):  # noqa: B017 - pickle raises many kinds
        pickle.loads(data)
