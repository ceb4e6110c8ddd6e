"""`to_numpy`: NumPy's rules for copies, and clear answers where NumPy has no such array."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tensafe

SHARING = {
    "plain": lambda: torch.rand(3),
    "requires grad": lambda: torch.rand(3, requires_grad=True),
    "non-leaf": lambda: torch.rand(3, requires_grad=True) * 2,
    "Parameter": lambda: nn.Parameter(torch.rand(3)),
    "slice": lambda: torch.rand(9)[::3],
    "transposed": lambda: torch.rand(2, 3).t(),
    "complex": lambda: torch.rand(3, dtype=torch.complex64),
    "uint16": lambda: torch.ones(3, dtype=torch.uint16),
}
COPYING = {
    "conjugate": lambda: torch.rand(3, dtype=torch.complex64).conj(),
    "negative": lambda: torch.rand(3, dtype=torch.complex64).conj().imag,
    "frozen": lambda: frozen(torch.rand(3)),
}
REFUSED = {
    "bfloat16": (lambda: torch.rand(3).bfloat16(), r"NumPy has no bfloat16.*x\.float\(\)"),
    "float8": (lambda: torch.rand(3).to(torch.float8_e5m2), r"x\.float\(\)"),
    "complex32": (lambda: torch.ones(2, dtype=torch.complex32), r"x\.to\(torch\.complex64\)"),
    "sparse": (lambda: torch.eye(2).to_sparse(), r"x\.to_dense\(\)"),
    "csr": (lambda: torch.eye(2).to_sparse_csr(), r"x\.to_dense\(\)"),
    "quantised": (lambda: torch.quantize_per_tensor(torch.eye(2), 0.1, 0, torch.qint8), r"x\.dequantize\(\)"),
    "meta": (lambda: torch.empty(2, device="meta"), "no values"),
    "uninitialised": (nn.UninitializedParameter, "not initialised"),
    "nested": (lambda: torch.nested.nested_tensor([torch.rand(2)], layout=torch.jagged), r"x\.unbind\(\)"),
}


def frozen(x: torch.Tensor) -> torch.Tensor:
    torch._C._set_throw_on_mutable_data_ptr(x)
    return x


def values(x: torch.Tensor) -> list[Any]:
    return x.detach().clone().resolve_conj().resolve_neg().tolist()  # type: ignore[no-any-return]


def shares(x: torch.Tensor, array: np.ndarray[Any, Any]) -> bool:
    return bool(np.shares_memory(x.detach().numpy(), array))


@pytest.mark.parametrize("kind", SHARING)
def test_shares_unless_told_to_copy(kind: str) -> None:
    x = SHARING[kind]()
    for copy in (None, False):
        array = tensafe.to_numpy(x, copy=copy)
        assert array.tolist() == values(x)
        assert shares(x, array)
    array = tensafe.to_numpy(x, copy=True)
    assert array.tolist() == values(x)
    assert not shares(x, array)


@pytest.mark.parametrize("kind", COPYING)
def test_copies_where_it_must(kind: str) -> None:
    x = COPYING[kind]()
    for copy in (None, True):
        assert tensafe.to_numpy(x, copy=copy).tolist() == values(x)
    with pytest.raises(ValueError, match="copy=False") as refusal:
        tensafe.to_numpy(x, copy=False)
    assert isinstance(refusal.value, tensafe.TensafeError)


@pytest.mark.parametrize("kind", REFUSED)
def test_says_what_to_call_instead(kind: str) -> None:
    make, message = REFUSED[kind]
    with pytest.raises(tensafe.TensafeError, match=message):
        tensafe.to_numpy(make())


def test_trees() -> None:
    point = namedtuple("point", ["x", "y"])
    base = torch.zeros(3)
    tree = {"a": [base, 1, "text"], "b": point(base, None), "c": (np.ones(2),)}
    arrays = tensafe.to_numpy(tree)
    assert arrays["a"][0] is arrays["b"].x
    assert type(arrays["b"]) is point
    assert arrays["a"][1:] == [1, "text"]
    base.fill_(2.0)
    assert arrays["a"][0].tolist() == [2.0, 2.0, 2.0]
    copied = tensafe.to_numpy(tree, copy=True)
    base.fill_(3.0)
    assert copied["a"][0].tolist() == [2.0, 2.0, 2.0]
    assert copied["c"][0] is not tree["c"][0]  # type: ignore[index]
    state = tensafe.to_numpy(nn.Linear(2, 1).state_dict())
    assert {name: array.shape for name, array in state.items()} == {"weight": (1, 2), "bias": (1,)}


def test_the_place_in_a_tree_is_named() -> None:
    with pytest.raises(tensafe.TensafeError, match=r"x\['a'\]\[1\]: NumPy has no bfloat16"):
        tensafe.to_numpy({"a": [1, torch.ones(1).bfloat16()]})
    with pytest.raises(tensafe.TensafeError, match="state_dict"):
        tensafe.to_numpy(nn.Linear(1, 1))


def test_the_source_is_not_touched() -> None:
    x = torch.rand(3, requires_grad=True)
    y = x * 2
    tensafe.to_numpy(y)
    y.sum().backward()
    assert x.grad is not None


def test_a_list_that_holds_itself() -> None:
    tree: list[Any] = [torch.ones(2), {}]
    tree[1]["again"] = (tree,)
    made = tensafe.to_numpy(tree)
    assert made[1]["again"][0] is made
    assert made[0].tolist() == [1.0, 1.0]


def test_a_packed_sequence_whose_class_asks_for_tensors() -> None:
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.zeros(1)])
    made = tensafe.to_numpy(packed)
    assert type(made) is type(packed)
    assert made.data.tolist() == [1.0, 0.0, 1.0]
    assert isinstance(made.data, np.ndarray)
