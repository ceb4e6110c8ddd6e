"""`compact`: every value, every alias, and only the bytes that are reached."""

from __future__ import annotations

import copy
import io
import math
import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import tensafe
from copies.objects import Tree, trees
from copies.test_deepcopy_tensors import BEYOND, KINDS, assert_equal
from copies.twins import assert_apart, sharing, tensors_in


def saved_nbytes(obj: object) -> int:
    file = io.BytesIO()
    torch.save(obj, file)
    return len(file.getvalue())


def reached(views: list[torch.Tensor]) -> int:
    """Bytes of one storage that some view reaches, counted one by one: elements marked in a twin of it."""
    seen: set[int] = set()
    for view in views:
        index = torch.arange(view.untyped_storage().nbytes() // view.itemsize)
        places = index.as_strided(view.size(), view.stride(), view.storage_offset())
        seen |= {p * view.itemsize + b for p in places.flatten().tolist() for b in range(view.itemsize)}
    return len(seen)


def test_a_slice_becomes_small() -> None:
    big = torch.rand(1000, 100)
    small = tensafe.compact(big[:2])
    assert torch.equal(small, big[:2])
    assert small.untyped_storage().nbytes() == 800
    assert saved_nbytes(small) < 4000 < saved_nbytes(copy.deepcopy(big[:2]))


@given(st.integers(0, 10**9))
@settings(max_examples=150)
def test_views_of_one_storage(seed: int) -> None:
    """Values and sharing as before; as small as the union, or as the one span that holds it."""
    chance = random.Random(seed)
    base = torch.rand(chance.randrange(1, 40))
    views = []
    for _ in range(chance.randrange(1, 5)):
        shape, strides, reach = [], [], 0
        for _ in range(chance.randrange(3)):
            size, stride = chance.randrange(1, 4), chance.randrange(0, 6)
            if reach + (size - 1) * stride < len(base):
                shape.append(size)
                strides.append(stride)
                reach += (size - 1) * stride
        views.append(base.as_strided(shape, strides, chance.randrange(len(base) - reach)))
    copied = tensafe.compact(views)
    assert all(torch.equal(a, b) for a, b in zip(views, copied, strict=True))
    assert_apart(views, copied)
    nbytes = sum({x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in copied}.values())
    assert reached(views) <= nbytes <= base.nbytes
    if not any(0 in x.stride() for x in views):
        assert sharing(copied) == sharing(views)


def test_dense_and_strided_views_take_the_bytes_that_they_reach() -> None:
    big = torch.arange(1000.0)
    rows, column = big[10:20], big[400:800].view(20, 20)[:, 3]
    copied = tensafe.compact([rows, column, big[15:25]])
    sizes = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in copied}
    assert sum(sizes.values()) == reached([rows, column, big[15:25]])


def test_many_rows_are_copied_view_by_view() -> None:
    big = torch.arange(20 * 20 * 20.0).view(20, 20, 20)
    fine = big[:, ::2, ::3]
    views = [fine, fine[:, :1].expand(20, 5, 7), fine[3:5], big[:, 1, 1]]
    assert len(tensafe.plan(views, compact=True).storages[0].packing.rows) > 64  # type: ignore[union-attr]
    copied = tensafe.compact(views)
    assert all(torch.equal(a, b) for a, b in zip(views, copied, strict=True))
    alone = tensafe.compact([fine[:, :1].expand(20, 5, 7), big[0, 0, 1]])
    assert torch.equal(alone[0], views[1])
    copied[0].zero_()
    assert copied[2].abs().sum() == 0
    assert big[1, 2, 3] == 443.0


def test_rows_that_repeat_are_copied_once() -> None:
    big = torch.arange(4000.0).view(20, 10, 20)
    repeated = big[:, ::2, None, ::3].expand(20, 5, 4, 7)
    copied = tensafe.compact([repeated])
    assert torch.equal(copied[0], repeated)
    assert copied[0].untyped_storage().nbytes() == 20 * 5 * 7 * 4


@given(trees())
@settings(max_examples=100)
def test_trees_keep_values_and_aliases(tree: Tree) -> None:
    copied = tensafe.compact(tree.root)
    assert_apart(tree.root, copied)
    theirs, ours = tensors_in(tree.root), tensors_in(copied)
    assert [x.tolist() for x in theirs] == [x.tolist() for x in ours]
    assert [x.requires_grad for x in theirs if x.is_leaf] == [x.requires_grad for x in ours if x.is_leaf]
    assert sharing(copied) == sharing(tree.root)


@pytest.mark.parametrize("kind", [*KINDS, *BEYOND])
def test_it_refuses_nothing_that_deepcopy_accepts(kind: str) -> None:
    x: Any = {**KINDS, **BEYOND}[kind]()
    assert_equal(tensafe.deepcopy(x), tensafe.compact(x))
    assert_equal(tensafe.deepcopy(x), tensafe.compact([x, 1])[0])


def test_a_module_with_an_optimizer() -> None:
    big = torch.rand(100, 10)
    model = nn.Linear(10, 3)
    model.register_buffer("sample", big[:2])
    small = tensafe.compact(model)
    assert isinstance(small.weight, nn.Parameter)
    assert small.weight.requires_grad
    assert torch.equal(small.sample, big[:2])
    assert saved_nbytes(small.state_dict()) < saved_nbytes(model.state_dict()) - 3000


def test_graphs() -> None:
    weight = torch.ones(100, requires_grad=True)
    h = weight * 2
    history = [h[:2]]
    with pytest.raises(tensafe.TensafeError, match=r"`history\[0\]`"):
        tensafe.compact(history)
    cut = tensafe.compact(h[:2], graph="cut")
    assert (cut.requires_grad, cut.untyped_storage().nbytes()) == (False, 8)
    kept = tensafe.compact(h[:2], graph="keep")
    assert kept.untyped_storage().nbytes() == 8
    kept.sum().backward()
    assert weight.grad is not None
    assert weight.grad.sum() == 4.0
    assert math.prod(kept.shape) == 2


def test_a_tensor_whose_storage_was_freed_is_copied_as_deepcopy_does() -> None:
    x = torch.ones(4)
    x.untyped_storage().resize_(0)
    for call in (tensafe.compact, tensafe.copy):
        copied = call([x, torch.ones(2)])
        assert copied[0].shape == (4,)
        assert copied[1].tolist() == [1.0, 1.0]
    assert x.untyped_storage().nbytes() == 0
