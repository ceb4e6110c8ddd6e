"""Totals of a memory map against hand counts and against sets of byte addresses."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from torch import Tensor, nn

from tensafe import memory_map


def addresses(tensor: Tensor) -> set[int]:
    """Every byte that a strided tensor reaches, one element after the other."""
    found = set()
    for index in np.ndindex(tuple(tensor.shape)):
        first = (
            tensor.data_ptr()
            + sum(i * s for i, s in zip(index, tensor.stride(), strict=True)) * tensor.itemsize
        )
        found.update(range(first, first + tensor.itemsize))
    return found


@st.composite
def views(draw: st.DrawFn) -> list[Tensor]:
    """A few views of a few storages."""
    storages = [
        torch.zeros(draw(st.integers(1, 24)), dtype=draw(DTYPES)) for _ in range(draw(st.integers(1, 3)))
    ]
    found = []
    for _ in range(draw(st.integers(1, 6))):
        whole = draw(st.sampled_from(storages))
        start, step = draw(st.integers(0, len(whole) - 1)), draw(st.integers(1, 4))
        found.append(whole[start::step][: draw(st.integers(1, 24))])
    return found


DTYPES = st.sampled_from([torch.uint8, torch.float32, torch.float64, torch.complex64])


@given(views())
def test_totals_are_those_of_the_bytes(tensors: list[Tensor]) -> None:
    found = memory_map(tensors)
    reached = [addresses(tensor) for tensor in tensors]
    distinct = set().union(*reached)
    stored = sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())
    shared = {byte for byte in distinct if sum(byte in one for one in reached) > 1}
    assert found.stored_nbytes == stored
    assert found.dead_nbytes == stored - len(distinct)
    assert found.shared_nbytes == len(shared)
    assert found.logical_nbytes == sum(t.numel() * t.itemsize for t in tensors)
    assert found.tensor_count == len(tensors)


def test_storages_come_largest_first_and_tensors_by_offset() -> None:
    small, large = torch.zeros(3), torch.zeros(9)
    end, start = large[6:], large[:2]
    found = memory_map(small, end, start)
    assert [storage.nbytes for storage in found.storages] == [36, 12]
    assert [tensor.name for tensor in found.storages[0].tensors] == ["start", "end"]


def test_two_tensors_from_one_array_lie_in_one_allocation() -> None:
    array = np.zeros(10)
    first, second = torch.from_numpy(array[:6]), torch.from_numpy(array[4:])
    found = memory_map(first, second)
    assert [storage.nbytes for storage in found.storages] == [80]
    assert found.shared_nbytes == 16
    whole = memory_map(array, first, second)
    assert whole.stored_nbytes == 80
    assert whole.shared_nbytes == 80
    offsets = {tensor.name: tensor.extent.offset for tensor in whole.storages[0].tensors}
    assert offsets == {"array": 0, "first": 0, "second": 32}


def test_a_small_view_pins_a_large_storage() -> None:
    kept = torch.zeros(1000)[:1]
    found = memory_map(kept)
    assert [storage.dead_nbytes for storage in found.pinned] == [3996]
    assert not memory_map(kept.clone()).pinned


def test_equal_contents_only_when_asked() -> None:
    a, b, c = torch.ones(3, 4), torch.ones(4, 3).t(), torch.full((3, 4), 2.0)
    array, alias = np.ones((3, 4), dtype=np.float32), a[:]
    assert memory_map(a, b, c, array, alias).duplicates == ()
    assert memory_map(a, b, c, array, alias, hash=True).duplicates == (("a", "array", "b"),)


def test_hashing_leaves_lazy_clones_lazy() -> None:
    source = torch.arange(6.0)
    lazy = torch._lazy_clone(source)
    found = memory_map(source, lazy, hash=True)
    assert torch._C._is_cow_tensor(source)
    assert torch._C._is_cow_tensor(lazy)
    assert found.duplicates == (("lazy", "source"),)
    assert all("copy-on-write" in storage.notes for storage in found.storages)


def test_meta_tensors_are_shown_and_not_counted() -> None:
    model = nn.Linear(100, 100, device="meta")
    found = memory_map(model)
    assert found.tensor_count == 2
    assert found.stored_nbytes == 0
    assert found.storages[0].device == "meta"


def test_shared_memory_is_noted() -> None:
    shared = torch.zeros(2000).share_memory_()
    assert any("shared memory" in note for note in memory_map(shared).storages[0].notes)


def test_a_mapped_file_is_noted(tmp_path: Any) -> None:
    path = tmp_path / "numbers.npy"
    np.save(path, np.zeros(4096))
    mapped = np.load(path, mmap_mode="r")
    (note,) = memory_map(mapped).storages[0].notes
    assert "numbers.npy" in note
    assert "read-only" in note


class Wrapped(Tensor):
    """A wrapper subclass over two tensors."""

    @staticmethod
    def __new__(cls, low: Tensor, high: Tensor) -> Wrapped:
        return torch.Tensor._make_wrapper_subclass(cls, low.shape, dtype=low.dtype)  # type: ignore[attr-defined,no-any-return]

    def __init__(self, low: Tensor, high: Tensor) -> None:
        self.low, self.high = low, high

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["low", "high"], None

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        pytest.fail(f"{func} was called")


def test_a_wrapper_subclass_shows_what_it_wraps() -> None:
    half = torch.zeros(8)
    wrapped = Wrapped(half[:4], torch.zeros(4))
    found = memory_map(wrapped)
    sizes = {tensor.name: storage.nbytes for storage in found.storages for tensor in storage.tensors}
    assert sizes == {"wrapped (low)": 32, "wrapped (high)": 16}


def test_a_language_model_with_a_tied_head_and_its_optimizer() -> None:
    transformers = pytest.importorskip("transformers")
    layers, width, words, places = 2, 48, 1000, 64
    sizes = {"n_layer": layers, "n_embd": width, "n_head": 4, "vocab_size": words, "n_positions": places}
    config = transformers.GPT2Config(**sizes)
    model = transformers.GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, words, (2, 8))
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    # per layer: two norms, attention in and out, two feed-forward maps; the head is tied to the embeddings
    block = 2 * 2 * width + (width + 1) * 3 * width + (width + 1) * width
    block += (width + 1) * 4 * width + (4 * width + 1) * width
    elements = (words + places) * width + layers * block + 2 * width
    tensors = 2 + layers * 12 + 2
    found = memory_map(model, optimizer)
    assert found.stored_nbytes == 4 * (4 * elements + tensors)  # weight, gradient, two moments; one step each
    assert found.tensor_count == 5 * tensors
    assert found.dead_nbytes == 0
    assert [tie.names for tie in found.ties] == [("model.lm_head.weight", "model.transformer.wte.weight")]
