"""`safe_inplace` with other hooks: checkpoints, `torch.func`, compilers, the program's own."""

from __future__ import annotations

import contextlib

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import tensafe
from runtime.slopes import grad, is_clean, slope

Tensor = torch.Tensor


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(w: Tensor, reentrant: bool, outside: bool) -> None:
    def block(x: Tensor) -> Tensor:
        with tensafe.safe_inplace() if outside else contextlib.nullcontext():
            y = x.sigmoid()
            z = y * y
            y.data.zero_()
            y.add_(1)
            return z.sum()

    with contextlib.nullcontext() if outside else tensafe.safe_inplace():
        x = w * 2
        loss = checkpoint(block, x, use_reentrant=reentrant)
        if not outside:
            x.detach().zero_()
        gradient = _backward(loss, w) if reentrant else grad(loss, w)
    s = (w.detach() * 2).sigmoid()
    assert torch.allclose(gradient, 4 * s * s * (1 - s), rtol=1e-12)


def _backward(loss: Tensor, w: Tensor) -> Tensor:
    loss.backward()
    assert w.grad is not None
    return w.grad


def test_checkpoint_after_the_context(w: Tensor) -> None:
    def block(x: Tensor) -> Tensor:
        y = x.sigmoid()
        y.mul_(2)
        return y.sum()

    with tensafe.safe_inplace():
        loss = checkpoint(block, w * 1, use_reentrant=False)
    s = w.detach().sigmoid()
    assert torch.allclose(grad(loss, w), 2 * s * (1 - s))


def test_a_parameter_changed_under_a_checkpoint_is_refused() -> None:
    layer = nn.Linear(3, 3)
    with tensafe.safe_inplace():
        loss = checkpoint(
            lambda x: layer(x).tanh(), torch.ones(1, 3, requires_grad=True), use_reentrant=False
        )
        with torch.no_grad():
            layer.weight.mul_(2)
        with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*checkpoint"):
            loss.sum().backward()


def test_rrelu_inside_a_checkpoint() -> None:
    def gradient() -> Tensor:
        torch.manual_seed(0)
        x = torch.randn(50, requires_grad=True)
        return grad(checkpoint(lambda x: F.rrelu(x, training=True).exp().sum(), x, use_reentrant=False), x)

    plain = gradient()
    with tensafe.safe_inplace():
        assert torch.equal(gradient(), plain)


def test_torch_func_runs_inside_and_refuses_outside() -> None:
    from torch.func import grad as func_grad
    from torch.func import hessian, vmap

    x = torch.linspace(0.1, 1, 4)

    def through(x: Tensor) -> Tensor:
        return x.exp().sum()

    def protected(x: Tensor) -> Tensor:
        with tensafe.safe_inplace():
            return through(x)

    with tensafe.safe_inplace():
        assert torch.equal(func_grad(through)(x), x.exp())
        assert torch.allclose(hessian(through)(x), torch.diag(x.exp()))
        assert torch.equal(vmap(func_grad(through))(torch.stack([x, x]))[1], x.exp())
        y = x.clone().requires_grad_()
        z = y.exp()
        z.data.zero_()
        assert torch.equal(grad(z.sum(), y), x.exp()), "protected again after the transforms"
    with pytest.raises(tensafe.TensafeError, match=r"torch\.func"):
        func_grad(protected)(x)


def test_the_programs_own_hooks(w: Tensor) -> None:
    seen: list[Tensor] = []

    def pack(tensor: Tensor) -> tuple[str, Tensor]:
        seen.append(tensor)
        return "kept", tensor

    def unpack(packed: tuple[str, Tensor]) -> Tensor:
        return packed[1]

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, unpack)
    orders = [(tensafe.safe_inplace(), hooks)]
    if hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"):  # else those around it are not seen
        orders.append((hooks, tensafe.safe_inplace()))
    for outer, inner in orders:
        seen.clear()
        with outer, inner:
            y = w.exp()
            z = (y * y).sum()
            y.data.zero_()
            gradient = grad(z, w)
        assert torch.allclose(gradient, 2 * (2 * w.detach()).exp(), rtol=1e-12)
        assert len(seen) == 3
        assert all(tensor.requires_grad for tensor in seen)
    assert hooks.pack_hook is pack


def test_their_hooks_know_parameters_by_identity() -> None:
    layer, seen = nn.Linear(2, 2), []
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t)
    x = torch.ones(1, 2, requires_grad=True)
    with tensafe.safe_inplace(), hooks:
        loss = layer(x * 1).sum()
        before = layer.weight.detach().sum(0, keepdim=True)
        with torch.no_grad():
            layer.weight.zero_()
        assert torch.equal(grad(loss, x), before)
    assert any(tensor.data_ptr() == layer.weight.data_ptr() for tensor in seen)


def test_save_on_cpu(w: Tensor) -> None:
    with tensafe.safe_inplace(), torch.autograd.graph.save_on_cpu():
        y = w.exp()
        z = y * 1
        y.zero_()
        assert torch.equal(grad(z.sum(), w), slope(w))


def test_compiled_code_stays_compiled() -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    net = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), nn.Linear(4, 1))
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    x = torch.randn(3, 4)
    gradients = []
    for model in (net, compiled):
        with tensafe.safe_inplace():
            net.zero_grad()
            hidden = x * 1
            loss = model(hidden).pow(2).sum()
            hidden.zero_()
            loss.backward()
        gradients.append(net[0].weight.grad.clone())  # type: ignore[union-attr]
    assert torch.allclose(*gradients)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1

    @torch.compile(backend="aot_eager")
    def entering(x: Tensor) -> Tensor:
        with tensafe.safe_inplace():
            y = x.exp()
            z = y * 2
            y.zero_()
            return z.sum()

    leaf = torch.ones(3, requires_grad=True)
    assert torch.allclose(grad(entering(leaf), leaf), 2 * torch.ones(3).exp())
    assert is_clean()
