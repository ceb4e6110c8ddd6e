"""`tensafe.dumps` and `loads` against plain pickle, and what pickle does not keep against the original."""

from __future__ import annotations

import gc
import io
import mmap
import pickle
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given

import tensafe
from copies.generated import bytes_of, leaves_of, scribble, shape_of, trees


def through_bytes(tree: Any) -> Any:
    return tensafe.loads(tensafe.dumps(tree))


def through_bytearray(tree: Any) -> Any:
    return tensafe.loads(bytearray(tensafe.dumps(tree)))


def through_buffers(tree: Any) -> Any:
    buffers: list[Any] = []
    data = tensafe.dumps(tree, buffers=buffers)
    return tensafe.loads(data, buffers=[bytearray(buffer.raw()) for buffer in buffers])


def through_a_file(tree: Any) -> Any:
    file = io.BytesIO()
    tensafe.Pickler(file).dump(tree)
    file.seek(0)
    return tensafe.Unpickler(file).load()


WAYS = [through_bytes, through_bytearray, through_buffers, through_a_file]


@pytest.mark.parametrize("way", WAYS)
@given(tree=trees())
def test_structure_and_values_are_those_of_plain_pickle(way: Any, tree: Any) -> None:
    plain, ours = pickle.loads(pickle.dumps(tree, 5)), way(tree)
    assert shape_of(ours) == shape_of(plain)
    assert list(map(bytes_of, leaves_of(ours))) == list(map(bytes_of, leaves_of(plain)))


@pytest.mark.parametrize("way", WAYS)
@given(tree=trees())
def test_one_object_in_two_places_is_one_object(way: Any, tree: Any) -> None:
    def pattern(leaves: list[Any]) -> list[int]:
        return [next(i for i, other in enumerate(leaves) if other is one) for one in leaves]

    assert pattern(list(leaves_of(way(tree)))) == pattern(list(leaves_of(tree)))


@pytest.mark.parametrize("way", WAYS)
@given(tree=trees())
def test_a_write_through_one_alias_is_seen_where_the_original_shows_it(way: Any, tree: Any) -> None:
    originals, loaded = list(leaves_of(tree)), list(leaves_of(way(tree)))
    for original, ours in zip(originals, loaded, strict=True):
        if original.size == 0 if isinstance(original, numpy.ndarray) else original.numel() == 0:
            continue
        if _overlaps_itself(original):
            continue
        scribble(original)
        scribble(ours)
        assert list(map(bytes_of, loaded)) == list(map(bytes_of, originals))


def _overlaps_itself(leaf: Any) -> bool:
    strides = leaf.strides if isinstance(leaf, numpy.ndarray) else leaf.stride()
    return any(size > 1 and not stride for size, stride in zip(leaf.shape, strides, strict=True))


def test_a_slice_leaves_the_rest_behind() -> None:
    table = torch.zeros(250_000)
    assert len(tensafe.dumps(table[:100])) < 2_000 < len(pickle.dumps(table[:100], 5))
    column = torch.zeros(1_000, 1_000)[:, 3]
    assert len(tensafe.dumps(column)) < 6_000
    assert tensafe.loads(tensafe.dumps(column)).untyped_storage().nbytes() == 4_000


def test_views_of_one_storage_share_one_buffer() -> None:
    base = torch.arange(100_000.0)
    assert len(tensafe.dumps([base, base[1:], base.view(10, -1).t()])) < base.nbytes + 2_000


def test_large_memory_is_handed_over_uncopied() -> None:
    x, a = torch.zeros(100_000), numpy.zeros(100_000)
    buffers: list[Any] = []
    data = tensafe.dumps({"x": x, "a": a, "column": x[500:]}, buffers=buffers)
    assert len(data) < 2_000
    loaded = tensafe.loads(data, buffers=buffers)
    x[600] = 7.0
    a[3] = 8.0
    assert loaded["x"][600] == 7 == loaded["column"][100]
    assert loaded["a"][3] == 8


def test_buffers_keep_the_memory_that_they_are() -> None:
    buffers: list[Any] = []
    data = tensafe.dumps(torch.full((100_000,), 3.0), buffers=buffers)
    others = [torch.zeros(100_000) for _ in range(20)]
    assert tensafe.loads(data, buffers=buffers).sum() == 300_000
    assert others[0].sum() == 0


def test_one_list_may_hold_the_buffers_of_several_objects() -> None:
    file, buffers = io.BytesIO(), []  # type: tuple[io.BytesIO, list[Any]]
    pickler = tensafe.Pickler(file, buffers=buffers)
    for number in range(3):
        pickler.dump([torch.full((50_000,), float(number)), torch.tensor(number)])
    file.seek(0)
    unpickler = tensafe.Unpickler(file, buffers=buffers)
    for number in range(3):
        large, small = unpickler.load()
        assert large.sum() == 50_000 * number
        assert small == number


def test_a_writable_buffer_is_not_copied() -> None:
    data = bytearray(tensafe.dumps([torch.zeros(3), numpy.zeros(3)]))
    first, second = tensafe.loads(data), tensafe.loads(data)
    first[0][1] = 5.0
    first[1][2] = 6.0
    assert second[0].tolist() == [0, 5, 0]
    assert second[1].tolist() == [0, 0, 6]


def test_bytes_are_never_written() -> None:
    data = tensafe.dumps([torch.zeros(3), numpy.zeros(3), torch.zeros(5, 5)[:, 1]])
    before = bytes(bytearray(data))
    for leaf in tensafe.loads(data):
        leaf += 1
    assert data == before


def test_not_writable_means_no_copy_and_no_write() -> None:
    file = mmap.mmap(-1, 1 << 16)
    data = tensafe.dumps({"x": torch.arange(100.0), "rows": torch.zeros(4, 4)[:, :2], "a": numpy.ones(3)})
    file[: len(data)] = data
    loaded = tensafe.loads(file, writable=False)
    with pytest.raises(RuntimeError):
        loaded["x"].add_(1)
    with pytest.raises(RuntimeError):
        loaded["rows"][0].zero_()
    with pytest.raises(ValueError, match="read-only"):
        loaded["a"][0] = 1
    again = tensafe.loads(file)  # the map itself may be written
    again["x"][3] = -1.0
    again["a"][0] = -2.0
    assert loaded["x"][3] == -1
    assert loaded["a"][0] == -2
    assert (loaded["x"] + 1).add_(1)[0] == 2


def test_the_buffer_lives_as_long_as_a_tensor_over_it() -> None:
    data = bytearray(tensafe.dumps(torch.arange(1_000)))
    loaded = tensafe.loads(data)
    with pytest.raises(BufferError):
        data.clear()
    del data
    assert loaded.sum() == 499_500


def test_a_module_keeps_ties_names_and_attributes() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    model[1].weight = model[0].weight
    model[0].weight.group = "tied"  # type: ignore[union-attr]
    model.register_buffer("steps", torch.tensor(3))
    loaded = through_bytes(model)
    assert loaded[1].weight is loaded[0].weight
    assert loaded[0].weight.group == "tied"
    assert type(loaded[0].weight) is torch.nn.Parameter
    assert loaded.steps == 3
    assert torch.equal(loaded(torch.ones(4)), model(torch.ones(4)))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_an_optimizer_goes_on_with_the_model_it_came_with(name: str) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1)
    model(torch.ones(3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    pair = through_bytes((model, optimizer))
    for one, stepper in ((model, optimizer), pair):
        one(torch.ones(3)).sum().backward()
        stepper.step()
    assert torch.equal(pair[0].weight, model.weight)


def test_files_hold_several_objects_one_after_the_other(tmp_path: Path) -> None:
    large = torch.arange(400_000.0)
    with open(tmp_path / "two", "wb") as out:
        pickler = tensafe.Pickler(out)
        pickler.dump([large, large[7:]])
        pickler.dump({"b": large[::2]})
    with open(tmp_path / "two", "rb") as source:
        unpickler = tensafe.Unpickler(source)
        first, second = unpickler.load(), unpickler.load()
        with pytest.raises(EOFError):
            unpickler.load()
    assert torch.equal(first[1], large[7:])
    assert torch.equal(second["b"], large[::2])


def test_buffers_in_garbage_cycles_are_freed_in_peace() -> None:
    array = numpy.zeros(50_000)
    array.flags.writeable = False
    for _ in range(20):
        buffers: list[Any] = []
        loaded = tensafe.loads(tensafe.dumps([torch.zeros(50_000), array], buffers=buffers), buffers=buffers)
        cycle: list[Any] = [loaded, buffers, [memoryview(buffer) for buffer in buffers]]
        cycle.append(cycle)
        loaded[0].cycle = cycle
        assert not loaded[1].flags.writeable
    gc.collect()
