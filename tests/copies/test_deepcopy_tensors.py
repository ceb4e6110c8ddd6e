"""`deepcopy` of every kind of tensor, beside `copy.deepcopy` where that can copy it at all."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import tensafe

NESTED: Any = torch.nested.nested_tensor


class Plainly(torch.Tensor):
    """A subclass with nothing of its own, which stock `__deepcopy__` refuses."""


class Counted(torch.Tensor):
    """A subclass that sees torch functions and copies itself."""

    copies = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Counted:
        type(self).copies += 1
        return self.detach().clone().as_subclass(Counted)


class Weight(nn.Parameter):
    """A Parameter class of one's own."""


def eye() -> torch.Tensor:
    return torch.eye(4)


KINDS: dict[str, Callable[[], torch.Tensor]] = {
    "strided": eye,
    "0-d": lambda: torch.tensor(3.0),
    "empty": lambda: torch.empty(0, 3),
    "slice": lambda: eye()[1:3],
    "column": lambda: eye()[:, 1],
    "transposed": lambda: torch.arange(6.0).view(2, 3).t(),
    "expanded": lambda: torch.ones(3, 1).expand(3, 4),
    "channels last": lambda: torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last),
    "shared": lambda: eye().share_memory_(),
    "leaf": lambda: eye().requires_grad_(),
    "bfloat16": lambda: eye().bfloat16(),
    "float8": lambda: eye().to(torch.float8_e4m3fn),
    "complex": lambda: eye().to(torch.complex64),
    "meta": lambda: torch.empty(3, device="meta"),
    "quantised": lambda: torch.quantize_per_tensor(eye(), 0.1, 0, torch.qint8),
    "per channel": lambda: torch.quantize_per_channel(
        eye(), torch.full((4,), 0.1), torch.zeros(4), 0, torch.qint8
    ),
    "sparse": lambda: eye().to_sparse(),
    "uncoalesced": lambda: torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,)),
    "lazy clone": lambda: torch._lazy_clone(eye()),
    "Parameter": lambda: nn.Parameter(eye()),
    "frozen Parameter": lambda: nn.Parameter(torch.arange(3), requires_grad=False),
    "Parameter subclass": lambda: Weight(eye()),
    "Buffer": lambda: nn.Buffer(eye()),
    "conjugate": lambda: torch.view_as_complex(torch.rand(3, 2)).conj(),
    "negative": lambda: torch._neg_view(eye()),
    "uninitialised": nn.UninitializedParameter,
    "jagged": lambda: NESTED([torch.rand(2, 4), torch.rand(3, 4)], layout=torch.jagged),
}
BEYOND: dict[str, Callable[[], torch.Tensor]] = {
    "csr": lambda: eye().to_sparse_csr(),
    "csc": lambda: eye().to_sparse_csc(),
    "bsr": lambda: eye().to_sparse_bsr((2, 2)),
    "bsc": lambda: eye().to_sparse_bsc((2, 2)),
    "nested": lambda: NESTED([torch.rand(2, 4), torch.rand(3, 4)]),
    "sparse Parameter": lambda: nn.Parameter(eye().to_sparse()),
    "csr Parameter": lambda: nn.Parameter(eye().to_sparse_csr()),
    "plain subclass": lambda: eye().as_subclass(Plainly),
}


def values(x: torch.Tensor) -> list[torch.Tensor]:
    """The elements as plain tensors."""
    with torch.no_grad():
        if isinstance(x, (nn.UninitializedParameter, nn.UninitializedBuffer)) or x.is_meta:
            return []
        if x.is_nested:
            return [one.as_subclass(torch.Tensor) for one in x.unbind()]
        if x.layout is not torch.strided:
            return [x.to_dense()]
        return [x.dequantize() if x.is_quantized else x.as_subclass(torch.Tensor)]


def assert_equal(a: torch.Tensor, b: torch.Tensor) -> None:
    assert type(a) is type(b)
    assert (a.dtype, a.layout, a.requires_grad) == (b.dtype, b.layout, b.requires_grad)
    assert len(values(a)) == len(values(b))
    for one, other in zip(values(a), values(b), strict=True):
        if one.dtype is torch.float8_e4m3fn:
            one, other = one.float(), other.float()
        assert torch.equal(one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_as_the_standard_library(kind: str) -> None:
    x = KINDS[kind]()
    stock, ours = copy.deepcopy(x), tensafe.deepcopy(x)
    assert_equal(stock, ours)
    if kind in ("uninitialised", "jagged") or x.layout is not torch.strided:
        return
    assert ours.stride() == stock.stride()
    assert ours.untyped_storage().nbytes() == stock.untyped_storage().nbytes()
    assert ours.untyped_storage().is_shared() is stock.untyped_storage().is_shared()
    if not x.is_meta and x.numel():
        assert ours.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("kind", BEYOND)
def test_where_the_standard_library_refuses(kind: str) -> None:
    x = BEYOND[kind]()
    with pytest.raises((RuntimeError, NotImplementedError)):
        copy.deepcopy(x)
    assert_equal(x, tensafe.deepcopy(x))


def test_an_uninitialised_buffer() -> None:
    ours = tensafe.deepcopy(nn.UninitializedBuffer(dtype=torch.float64))
    ours.materialize((2, 3))
    assert ours.dtype is torch.float64


def test_a_method_of_a_subclass_is_called_once() -> None:
    x = eye().as_subclass(Counted)
    Counted.copies = 0
    one, other = tensafe.deepcopy([x, x])
    assert one is other
    assert Counted.copies == 1


def test_a_lazy_conjugate_and_its_base_share_memory_in_the_copy() -> None:
    base = torch.tensor([1 + 2j, 3j])
    for source in ([base, base.conj()], [base.conj(), base]):
        copied = tensafe.deepcopy(source)
        assert [x.tolist() for x in copied] == [x.tolist() for x in source]
        assert copied[0].is_conj() != copied[1].is_conj()
        copied[0].fill_(5j)
        assert copied[1].tolist() == [-5j, -5j]
    assert base.tolist() == [1 + 2j, 3j]


def test_gradients_and_attributes_as_the_standard_library_keeps_them() -> None:
    leaf, parameter = torch.ones(2, requires_grad=True), nn.Parameter(torch.ones(2))
    for x in (leaf, parameter):
        x.grad = torch.full((2,), 7.0)
        x.note = [x]  # type: ignore[attr-defined]
        del x.note  # type: ignore[attr-defined]
        x.note = "kept"  # type: ignore[attr-defined]
    stock, ours = copy.deepcopy([leaf, parameter]), tensafe.deepcopy([leaf, parameter])
    for a, b in zip(stock, ours, strict=True):
        assert (a.grad is None) == (b.grad is None)
        assert hasattr(a, "note") == hasattr(b, "note")
    assert ours[0].grad is not leaf.grad
    with_gradients = tensafe.deepcopy(parameter, grads=True)
    assert with_gradients.grad is not None
    assert with_gradients.grad.tolist() == [7.0, 7.0]
    assert with_gradients.grad is not parameter.grad


def test_an_attribute_may_hold_its_tensor() -> None:
    x = torch.ones(2)
    x.me = x  # type: ignore[attr-defined]
    copied = tensafe.deepcopy(x)
    assert copied.me is copied  # type: ignore[attr-defined]


class Flat(nn.Module):
    """All weights in one buffer, Parameters as windows into it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("flat", torch.zeros(8))
        self.weight = nn.Parameter(self.flat[:6].view(2, 3))
        self.bias = nn.Parameter(self.flat[6:])


def test_parameters_stay_windows_into_one_buffer() -> None:
    copied = tensafe.deepcopy(Flat())
    copied.flat.fill_(2.0)
    assert copied.bias.tolist() == [2.0, 2.0]
    assert copied.weight.sum() == 12.0


def test_parameters_that_share_no_byte_do_not_take_the_storage_along() -> None:
    storage = torch.zeros(10_000)
    copied = tensafe.deepcopy([nn.Parameter(storage[:4]), nn.Parameter(storage[8:12])])
    assert [x.untyped_storage().nbytes() for x in copied] == [16, 16]
    copied = tensafe.deepcopy([nn.Parameter(storage[:4]), nn.Parameter(storage[2:6])])
    copied[0].detach().fill_(1.0)
    assert copied[1].tolist() == [1.0, 1.0, 0.0, 0.0]


def test_a_tie_and_an_optimizer_s_hold_are_kept() -> None:
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5, bias=False))
    model[1].weight = model[0].weight
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.tensor([1])).sum().backward()
    optimizer.step()
    other, its = tensafe.deepcopy((model, optimizer))
    assert other[0].weight is other[1].weight
    assert its.param_groups[0]["params"][0] is other[0].weight
    assert list(its.state) == [other[0].weight]
    before = model[0].weight.detach().clone()
    other(torch.tensor([1])).sum().backward()
    its.step()
    assert torch.equal(model[0].weight, before)
    assert not torch.equal(other[0].weight, before)


def test_large_tensors_are_copied_whole() -> None:
    x = torch.arange(5 << 20, dtype=torch.int64)
    copied = tensafe.deepcopy([x, x[5:], nn.Parameter(x.float())])
    assert torch.equal(copied[0], x)
    assert torch.equal(copied[2], x.float())
    copied[0][7] = -1
    assert copied[1][2] == -1
    assert x[7] == 7


def test_under_modes_it_does_what_the_standard_library_does() -> None:
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    with FakeTensorMode():
        assert isinstance(tensafe.deepcopy([torch.empty(3)] * 8)[0], FakeTensor)
    x = [torch.ones(2) for _ in range(8)]
    with torch.inference_mode():
        inside = tensafe.deepcopy(x)
    assert inside[0].is_inference() == copy.deepcopy(x)[0].is_inference() or inside[0].is_inference()
    outside = tensafe.deepcopy(inside)
    assert not outside[0].is_inference()
    with torch.device("meta"):
        assert tensafe.deepcopy(x)[0].device.type == "cpu"


def test_nothing_of_the_process_changes() -> None:
    source = [nn.Linear(3, 3), torch.rand(4), torch.rand(3, requires_grad=True)]
    state, mode = torch.get_rng_state(), torch.is_grad_enabled()
    before = [x._version for x in (source[1], source[2], source[0].weight)]
    tensafe.deepcopy(source)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.is_grad_enabled() == mode
    assert [x._version for x in (source[1], source[2], source[0].weight)] == before
