"""`copy`: the four meanings, beside the torch calls that they stand for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import nn

import tensafe
from copies.objects import Tree, trees
from copies.test_deepcopy_tensors import BEYOND, KINDS
from copies.twins import assert_apart, sharing, tensors_in

MEANINGS: dict[tuple[str, str], Any] = {
    ("own", "cut"): lambda x: x.detach().clone(),
    ("own", "keep"): lambda x: x.clone(),
    ("share", "cut"): lambda x: x.detach(),
    ("share", "keep"): lambda x: x.view_as(x),
}


def shares(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def sources() -> dict[str, torch.Tensor]:
    leaf = torch.rand(3, requires_grad=True)
    return {"plain": torch.rand(3), "leaf": leaf, "non-leaf": leaf * 2, "slice": torch.rand(9)[::2], "Parameter": nn.Parameter(leaf)}  # fmt: skip  # noqa: E501


@pytest.mark.parametrize("kind", sources())
@pytest.mark.parametrize(("memory", "graph"), MEANINGS)
def test_of_a_tensor(memory: Any, graph: Any, kind: str) -> None:
    x = sources()[kind]
    stands_for, ours = MEANINGS[memory, graph](x), tensafe.copy(x, memory=memory, graph=graph)
    in_a_tree = tensafe.copy({"x": [x]}, memory=memory, graph=graph)["x"][0]
    for y in (ours, in_a_tree):
        assert y is not x
        assert type(y) is type(stands_for)
        assert torch.equal(y, stands_for)
        assert y.requires_grad == stands_for.requires_grad
        assert y.is_leaf == stands_for.is_leaf
        assert shares(x, y) == shares(x, stands_for) == (memory == "share")
        assert y.stride() == stands_for.stride()
        assert y.untyped_storage().nbytes() == stands_for.untyped_storage().nbytes()


@pytest.mark.parametrize("memory", ["own", "share"])
def test_gradients_reach_the_source_when_the_graph_is_kept(memory: Any) -> None:
    weight = torch.ones(3, requires_grad=True)
    held = SimpleNamespace(a=weight, b=[weight * 2])
    copied = tensafe.copy(held, memory=memory, graph="keep")
    (copied.a.sum() + copied.b[0].sum()).backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [3.0, 3.0, 3.0]


@given(trees())
@settings(max_examples=100)
def test_a_tree_keeps_its_aliases(tree: Tree) -> None:
    copied = tensafe.copy(tree.root)
    assert_apart(tree.root, copied)
    values, ours = tensors_in(tree.root), tensors_in(copied)
    attributes = [x for x in values if not isinstance(x, nn.Parameter) and (x.__dict__ or x.grad is not None)]
    if not attributes:  # `detach().clone()` drops both, and the tensors in them
        assert [x.tolist() for x in ours] == [x.tolist() for x in values]
        assert sharing(copied) == sharing(tree.root)


def test_memory_shared_within_and_with_the_source() -> None:
    base = torch.zeros(4)
    copied = tensafe.copy([base, base[2:], base], memory="share")
    assert copied[0] is copied[2]
    assert copied[0] is not base
    copied[1].fill_(1.0)
    assert base.tolist() == [0.0, 0.0, 1.0, 1.0]


def test_a_module_keeps_its_parameters() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    own = tensafe.copy(model)
    assert isinstance(own[0].weight, nn.Parameter)
    assert own[0].weight is own[1].weight
    assert not shares(own[0].weight, model[0].weight)
    light = tensafe.copy(model, memory="share")
    assert light[0] is not model[0]
    assert isinstance(light[0].weight, nn.Parameter)
    assert shares(light[0].weight, model[0].weight)


def test_a_differentiable_copy_of_a_module() -> None:
    """An inner step on the copy, and the gradient of what follows, at the module itself."""
    model = nn.Linear(2, 1, bias=False)
    inner = tensafe.copy(model, graph="keep")
    loss = inner(torch.ones(1, 2)).sum()
    (step,) = torch.autograd.grad(loss, [inner.weight], create_graph=True)
    inner._parameters["weight"] = inner.weight - 0.1 * step
    inner(torch.ones(1, 2)).pow(2).sum().backward()
    assert model.weight.grad is not None


def test_arrays_follow_the_memory() -> None:
    array = np.zeros(3)
    own, shared = tensafe.copy({"a": array})["a"], tensafe.copy({"a": array}, memory="share")["a"]
    array[0] = 1.0
    assert (own[0], shared[0]) == (0.0, 1.0)


@pytest.mark.parametrize("kind", [*KINDS, *BEYOND, "buffer"])
def test_every_kind_of_tensor(kind: str) -> None:
    x = {**KINDS, **BEYOND, "buffer": nn.UninitializedBuffer}[kind]()
    y = tensafe.copy([x])[0]
    assert y is not x
    assert not y.requires_grad or nn.parameter.is_lazy(y)
    assert (y.layout, y.dtype) == (x.layout, x.dtype)
    assert tensafe.copy([x], memory="share")[0] is not x


def test_other_words_are_refused() -> None:
    with pytest.raises(tensafe.TensafeError, match='it is "own" or "share"'):
        tensafe.copy(torch.ones(1), memory="lend")  # type: ignore[arg-type]
    with pytest.raises(tensafe.TensafeError, match='it is "cut" or "keep"'):
        tensafe.copy(torch.ones(1), graph="raise")  # type: ignore[arg-type]
