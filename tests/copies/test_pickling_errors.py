"""What `loads` says of bytes that it cannot read, and what subclasses of the pickler may change."""

from __future__ import annotations

import io
import os
import pickle
from typing import Any

import pytest
import torch

import tensafe
from tensafe.copies.pickling.errors import PicklingError, UnpicklingError


def message(data: Any, **options: Any) -> str:
    with pytest.raises(UnpicklingError) as raised:
        tensafe.loads(data, **options)
    assert "\n" not in str(raised.value)
    return str(raised.value)


DATA = tensafe.dumps({"x": torch.arange(1000), "text": "abc"})


@pytest.mark.parametrize("nbytes", [0, 3, 8, 63, 64, 100, len(DATA) - 8000, len(DATA) - 1])
def test_truncated(nbytes: int) -> None:
    assert "truncated" in message(DATA[:nbytes])
    if nbytes:
        with pytest.raises(UnpicklingError, match="truncated"):
            tensafe.Unpickler(io.BytesIO(DATA[:nbytes])).load()


def test_foreign() -> None:
    assert "pickle.loads" in message(pickle.dumps([1, 2], 5))
    file = io.BytesIO()
    torch.save(torch.zeros(1), file)
    assert "torch.load" in message(file.getvalue())
    assert "not written by tensafe.dumps" in message(b"hello, this is a text of some length" * 3)
    assert "a dict has no" in message({})


def test_another_version() -> None:
    assert "version 7" in message(DATA[:8] + b"\x07\x00" + DATA[10:])


def test_a_damaged_header() -> None:
    for place in (10, 12, 16, 40, 53):
        broken = DATA[:place] + bytes([DATA[place] ^ 1]) + DATA[place + 1 :]
        assert "header has changed" in message(broken)


@pytest.mark.parametrize("place", [70, 150, DATA.index(b"abc")])
def test_a_damaged_table_or_stream(place: int) -> None:
    assert "have changed" in message(DATA[:place] + bytes([DATA[place] ^ 4]) + DATA[place + 1 :])


def test_buffers_that_are_missing_or_short() -> None:
    buffers: list[Any] = []
    data = tensafe.dumps(torch.zeros(100_000), buffers=buffers)
    assert "0 are given" in message(data)
    assert "1 are given" in message(data, buffers=buffers[:1])
    short = [buffers[0], buffers[1].raw()[:-8]]
    assert "truncated: buffer 1" in message(data, buffers=short)


def test_other_protocols_are_refused() -> None:
    with pytest.raises(PicklingError, match="protocol 4"):
        tensafe.dumps(1, protocol=4)
    with pytest.raises(PicklingError, match="graph='keep'"):
        tensafe.dumps(1, graph="keep")  # type: ignore[arg-type]


def test_what_pickle_refuses_is_refused_in_its_words() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
        tensafe.dumps([torch.zeros(2), lambda: 0])


def test_the_stream_alone_says_who_reads_it() -> None:
    container = tensafe.dumps([torch.zeros(3)])
    start = container.index(b"\x80\x05", container.index(b"\x80\x05", 64) + 1)
    with pytest.raises(UnpicklingError, match=r"tensafe\.loads"):
        pickle.loads(container[start:])


def test_a_subclass_of_the_pickler_has_the_first_word() -> None:
    class ByName(tensafe.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            return obj.name if isinstance(obj, _Known) else None

        def reducer_override(self, obj: Any) -> Any:
            return (complex, (3, 4)) if isinstance(obj, _Replaced) else NotImplemented

    class FromNames(tensafe.Unpickler):
        def persistent_load(self, persistent: Any) -> Any:
            return {"first": _FIRST}[persistent]

    file = io.BytesIO()
    ByName(file).dump([_FIRST, torch.arange(3), _Replaced()])
    file.seek(0)
    known, tensor, replaced = FromNames(file).load()
    assert known is _FIRST
    assert tensor.tolist() == [0, 1, 2]
    assert replaced == 3 + 4j
    assert "persistent" in message(file.getvalue())


class _Known:
    def __init__(self, name: str) -> None:
        self.name = name


class _Replaced:
    pass


_FIRST = _Known("first")


def test_find_class_can_allow_few_names() -> None:
    class Strict(tensafe.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if module != "torch":
                raise UnpicklingError(f"{module}.{name} is not allowed")
            return super().find_class(module, name)

    assert Strict(io.BytesIO(tensafe.dumps([torch.ones(2)]))).load()[0].tolist() == [1, 1]
    data = tensafe.dumps([torch.ones(2), os.getcwd])
    with pytest.raises(UnpicklingError, match="getcwd is not allowed"):
        Strict(io.BytesIO(data)).load()


@pytest.mark.parametrize("part", [slice(None), slice(1, None), slice(None, None, 2)])
def test_a_tensor_whose_storage_was_freed(part: slice) -> None:
    x = torch.ones(4)[part]
    x.untyped_storage().resize_(0)
    with pytest.raises(PicklingError, match=r'^obj\["freed"\] has no memory'):
        tensafe.dumps({"kept": torch.ones(2), "freed": x})


@pytest.mark.parametrize("given", [3, [3], ["text"], [None]])
def test_buffers_that_are_none(given: Any) -> None:
    data = tensafe.dumps(torch.ones(9999), buffers=[])
    given = given * 2 if isinstance(given, list) else given
    with pytest.raises(UnpicklingError, match="buffers") as refusal:
        tensafe.loads(data, buffers=given)
    assert "\n" not in str(refusal.value)


def test_errors_are_caught_as_those_of_pickle() -> None:
    """Pools and queues catch `pickle.PicklingError`."""
    with pytest.raises(pickle.PicklingError):
        tensafe.dumps(torch.ones(2, requires_grad=True) * 2)
    with pytest.raises(pickle.UnpicklingError):
        tensafe.loads(b"not ours")
