"""The program's own saved-tensor hooks: they work as unwatched, and what they give back is compared."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.checkpoint import checkpoint

import tensafe
from tensafe.findings import Severity


def identity() -> saved_tensors_hooks:
    return saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)


def codes(seen: Any) -> set[str]:
    assert [item for item in seen.not_checked if "failed" in item.why] == []
    return {finding.code for finding in seen.findings if finding.severity is not Severity.NOTICE}


@pytest.mark.parametrize("context", [identity, save_on_cpu])
def test_memory_that_is_given_back_with_other_values_is_told(context: Any) -> None:
    gradients = []
    for watched in (False, True):
        w = torch.ones(3, requires_grad=True)
        with tensafe.watching() as seen, context():
            y = w.exp()
            loss = (y * y).sum()
            y.detach().add_(1)
            loss.backward()  # PyTorch checks nothing under hooks
        gradients.append(w.grad)
        if watched:
            assert codes(seen) == {"TS202"}
            lines = {finding.at.line for finding in seen.findings}
            assert len(lines) == 1
    assert torch.equal(*gradients)  # type: ignore[arg-type]


def test_another_part_of_the_memory_may_be_written() -> None:
    w, buffer = torch.ones(4, requires_grad=True), torch.zeros(8)
    with tensafe.watching() as seen, identity():
        loss = (w * buffer[:4]).sum()
        buffer[4:] = 5
        buffer[:4] = 0
        loss.backward()
    assert codes(seen) == set()


@pytest.mark.parametrize(
    "pair",
    [
        (lambda t: t.clone(), lambda t: t),
        (lambda t: t.to(torch.bfloat16), lambda t: t.float()),
        (lambda t: t.tolist(), lambda values: torch.tensor(values)),
    ],
)
def test_copies_of_their_own_are_their_business(pair: Any) -> None:
    w = torch.linspace(0, 1, 4, requires_grad=True)
    with tensafe.watching() as seen, saved_tensors_hooks(*pair):
        y = w.exp()
        loss = (y * 1).sum()
        y.detach().mul_(2)
        loss.backward()
    assert codes(seen) == set()


def test_a_parameter_changed_under_a_checkpoint_is_told() -> None:
    layer = torch.nn.Linear(3, 3)
    with tensafe.watching() as seen:
        x = torch.ones(1, 3, requires_grad=True)
        out = checkpoint(lambda x: layer(x).tanh(), x, use_reentrant=False)
        with torch.no_grad():
            layer.weight.mul_(2)
        out.sum().backward()
    assert codes(seen) == {"TS202"}


def test_a_checkpoint_keeps_no_activation() -> None:
    refs: list[weakref.ref[Any]] = []

    def block(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        refs.append(weakref.ref(y.untyped_storage()))
        return y.sin().sum()

    with tensafe.watching():
        loss = checkpoint(block, torch.ones(3, requires_grad=True), use_reentrant=False)
        assert [ref() for ref in refs] == [None]
        loss.backward()
        assert all(ref() is None for ref in refs)


def test_clones_go_with_the_graph() -> None:
    with tensafe.watching(), identity():
        x, w = torch.ones(3), torch.ones(3, requires_grad=True)
        for _ in range(5):
            (x * w).sum().backward()
        assert len(x.untyped_storage().__dict__["_tensafe_ledger"].under) == 0


@pytest.mark.skipif(
    not hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"),
    reason="they cannot be seen",
)
def test_begun_inside_their_hooks_or_inside_torch_func() -> None:
    shapes: list[Any] = []
    with saved_tensors_hooks(lambda t: shapes.append(t.shape) or t, lambda t: t):
        with tensafe.watching() as seen:
            w = torch.ones(3, requires_grad=True)
            y = w.exp()
            loss = (y * y).sum()
            y.data.add_(1)
            loss.backward()
        w.exp()
    assert len(shapes) == 4
    assert codes(seen) == {"TS202"}

    def inside(x: torch.Tensor) -> torch.Tensor:
        with tensafe.watching() as seen:
            y = x.exp()
        assert seen.not_checked
        return y.sum()

    assert torch.equal(torch.func.grad(inside)(torch.zeros(2)), torch.ones(2))


class Named(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "make", [lambda: torch.ones(3).as_subclass(Named), lambda: TwoTensor(torch.ones(3), torch.ones(3))]
)
def test_a_subclass_keeps_pytorchs_own_check(make: Any) -> None:
    def of_input() -> None:
        x = make()
        loss = (x * torch.ones(3, requires_grad=True)).sum()
        x.add_(1)
        loss.backward()

    def of_output() -> None:
        y = make().requires_grad_().exp()
        loss = y.sum()
        with torch.no_grad():
            y.add_(1)
        loss.backward()

    for program in (of_input, of_output):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            program()
        with tensafe.watching(), pytest.raises(RuntimeError, match="modified by an inplace operation"):
            program()


def test_an_output_that_is_no_plain_tensor_makes_no_cycle() -> None:
    with tensafe.watching():
        y = TwoTensor(torch.ones(3), torch.ones(3)).requires_grad_().exp()
        ref = weakref.ref(y)
        del y
        assert ref() is None
