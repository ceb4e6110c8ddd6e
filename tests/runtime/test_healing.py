"""`safe_inplace`: what autograd saved keeps its value, whoever writes and whatever reads."""

from __future__ import annotations

import ctypes
import re
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tensafe
from runtime.slopes import grad, slope, spoiled

Tensor = torch.Tensor


WRITES: dict[str, Callable[[Tensor], object]] = {
    "method": lambda y: y.mul_(2),
    "operator": lambda y: y.__iadd__(1),
    "item": lambda y: y.__setitem__(0, 0.0),
    "mask": lambda y: y.__setitem__(y > 1, 0.0),
    "offset view": lambda y: y[1:, 2:].zero_(),
    "data": lambda y: y.data.zero_(),
    "data after a version bump": lambda y: (y.add_(0), y.data.zero_()),
    "detach": lambda y: y.detach().zero_(),
    "no_grad": lambda y: torch.no_grad()(y.zero_)(),
    "foreach": lambda y: torch._foreach_mul_([y], 3),
    "out": lambda y: torch.mul(torch.ones(3, 4, dtype=torch.float64), 5, out=y.detach()),
    "storage": lambda y: y.untyped_storage().fill_(0),
    "storage item": lambda y: y.untyped_storage().__setitem__(7, 0x3F),
    "typed storage": lambda y: y.detach()._typed_storage().__setitem__(2, 9.0),
    "numpy after": lambda y: y.detach().numpy().fill(7),
    "array interface": lambda y: np.asarray(y.detach()).fill(7),
    "dlpack after": lambda y: ctypes.memset(np.from_dlpack(y.detach()).ctypes.data, 0, 16),
    "from_dlpack": lambda y: torch.from_dlpack(y.detach()).fill_(7),
    "pointer after": lambda y: ctypes.memset(y.data_ptr(), 0, 16),
    "set_": lambda y: y.detach().set_(torch.zeros(12, dtype=torch.float64)),
    "data assigned": lambda y: setattr(y, "data", torch.zeros(3, 4, dtype=torch.float64)),
    "relu": lambda y: F.relu(y.detach().neg_(), inplace=True),
    "resize": lambda y: y.detach().resize_(100).fill_(1),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_every_way_to_write(w: Tensor, write: Callable[[Tensor], object]) -> None:
    with tensafe.safe_inplace():
        y = w.exp()
        z = y * 1
        write(y)
        gradient = grad(z.sum(), w)
    assert torch.equal(gradient, slope(w))


WRONG_IN_TORCH = ("offset view", "data after a version bump", "storage", "numpy after", "pointer after")


@pytest.mark.parametrize("name", WRONG_IN_TORCH)
def test_where_torchs_own_context_is_wrong(w: Tensor, name: str) -> None:
    gradients = []
    own = torch.autograd.graph.allow_mutation_on_saved_tensors
    for context in (own, tensafe.safe_inplace):
        with context():
            y = w.exp()
            if name == "data after a version bump":
                y.add_(0)
            z = y * y
            WRITES["data" if name == "data after a version bump" else name](y)
            gradients.append(grad(z.sum(), w))
    theirs, ours = gradients
    twin = grad((w.exp() * w.exp()).sum(), w)
    assert torch.allclose(ours, twin, rtol=1e-12)
    assert not torch.allclose(theirs, twin), "PyTorch has learnt it: tell the docs"


def test_pytorchs_refusals_stay(w: Tensor) -> None:
    with tensafe.safe_inplace():
        with pytest.raises(RuntimeError, match="leaf Variable"):
            w.add_(1)
        with pytest.raises(RuntimeError, match="view"):
            w[0].add_(1)
        parts = (w * 1).unbind()
        with pytest.raises(RuntimeError, match="multiple views"):
            parts[0].add_(1)


def test_several_backwards(w: Tensor) -> None:
    with tensafe.safe_inplace():
        y = w.exp()
        z = (y * y).sum()
        first = grad(z, w, retain_graph=True)
        y.data.zero_()
        assert torch.equal(grad(z, w, retain_graph=True), first)
        y.add_(5)
        assert torch.equal(grad(z, w), first)


def test_double_backward(w: Tensor) -> None:
    with tensafe.safe_inplace():
        y = w.exp()
        z = (y * y).sum()
        y.mul_(3)
        first = grad(z, w, create_graph=True)
        first.detach().zero_()
        y.data.zero_()
        second = grad(first.sum(), w)
    assert torch.allclose(second, 4 * (2 * w.detach()).exp(), rtol=1e-12)


def test_gradgradcheck() -> None:
    def through(x: Tensor) -> Tensor:
        y = x.sigmoid()
        z = y * y
        y[1:].mul_(2)
        y.data.add_(0)
        return z + y.tanh_()

    x = torch.linspace(-1, 1, 4, dtype=torch.float64, requires_grad=True)
    with tensafe.safe_inplace():
        assert torch.autograd.gradcheck(through, x)
        assert torch.autograd.gradgradcheck(through, x)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_a_step_between_two_backwards(kind: Any, fused: bool) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x = torch.randn(5, 3, requires_grad=True)
    optimizer = kind(net.parameters(), lr=0.5, fused=fused)
    with tensafe.safe_inplace():
        loss = net(x).pow(2).sum()
        loss.backward(retain_graph=True)
        first, x.grad = x.grad, None
        optimizer.step()
        loss.backward()
    assert torch.equal(first, x.grad)


def test_custom_functions(w: Tensor) -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
            (x,) = ctx.saved_tensors
            result = 2 * x * gradient
            x.zero_()  # its own copy: the next backward reads the value again
            return result

    with tensafe.safe_inplace():
        x = w * 1
        y = Square.apply(x)
        x.data.zero_()
        first = grad(y.sum(), w, retain_graph=True)
        assert torch.equal(first, 2 * w.detach())
        assert torch.equal(grad(y.sum(), w), first)


def test_a_gradient_that_is_a_saved_tensor_does_not_spoil_it(w: Tensor) -> None:
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x.clone())
            return x.sum()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
            return ctx.saved_tensors[0]  # type: ignore[no-any-return]

    with tensafe.safe_inplace():
        loss = Odd.apply(w)
        for times in (1, 2, 3):
            loss.backward(retain_graph=True)
            assert torch.equal(w.grad, times * w.detach())  # type: ignore[arg-type]


def test_rrelu_and_ctc() -> None:
    def losses() -> list[Tensor]:
        torch.manual_seed(0)
        x = torch.randn(20, 2, 5, requires_grad=True)
        slope = F.rrelu(x, training=True)
        slope = slope + torch.rrelu_(x * 1, training=True)
        targets, lengths = torch.tensor([[1, 2, 3], [2, 1, 4]]), torch.tensor([20, 20])
        ctc = F.ctc_loss(x.log_softmax(2), targets, lengths, torch.tensor([3, 3]))
        return [*torch.autograd.grad(slope.sum(), x), *torch.autograd.grad(ctc, x)]

    plain = losses()
    with tensafe.safe_inplace():
        ours = losses()
    assert all(torch.equal(one, other) for one, other in zip(plain, ours, strict=True))


def test_batch_norm_statistics() -> None:
    def gradient(change: bool) -> Tensor:
        torch.manual_seed(0)
        norm = nn.BatchNorm1d(4).double()
        x = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
        norm(x)
        norm.eval()
        loss = norm(x).pow(3).sum()
        if change:
            norm.running_var.mul_(3)  # type: ignore[union-attr]
        return grad(loss, x)

    with tensafe.safe_inplace():
        assert torch.equal(gradient(True), gradient(False))


def test_autocast(w: Tensor) -> None:
    layer, x = nn.Linear(4, 4), torch.randn(2, 4)
    with tensafe.safe_inplace(), torch.autocast("cpu", torch.bfloat16):
        hidden = layer(x)
        loss = (hidden * hidden).sum()
        hidden.zero_()
        loss.backward()
    ours, layer.weight.grad = layer.weight.grad, None
    with torch.autocast("cpu", torch.bfloat16):
        hidden = layer(x)
        (hidden * hidden).sum().backward()
    assert torch.equal(ours, layer.weight.grad)  # type: ignore[arg-type]


def test_arrays_made_before_or_inside(w: Tensor) -> None:
    for make in (
        lambda: np.ones((3, 4)),
        lambda: torch.ones(3, 4, dtype=torch.float64).numpy(),
    ):
        array = make()
        with tensafe.safe_inplace():
            loss = (w * torch.from_numpy(array)).sum()
            array[:] = 5
            assert torch.equal(grad(loss, w), torch.ones_like(w))
    x = torch.ones(3, 4, dtype=torch.float64)
    array, pointer = x.numpy(), x
    with tensafe.safe_inplace():
        loss = (w * pointer).sum()
        array[:] = 5
        assert torch.equal(grad(loss, w), torch.ones_like(w))


def test_pointers_and_capsules_taken_inside_then_saved(w: Tensor) -> None:
    for export in (lambda x: x.data_ptr(), lambda x: x.untyped_storage().data_ptr(), np.from_dlpack):
        with tensafe.safe_inplace():
            x = torch.ones(3, 4, dtype=torch.float64)
            out = export(x)
            for _ in range(2):
                loss = (w * x).sum()
                ctypes.memset(out if isinstance(out, int) else out.ctypes.data, 0, 8)
                assert float(x[0, 0]) == 0
                x[0, 0] = 1
                assert torch.equal(grad(loss, w), torch.ones_like(w))


def test_shared_memory(w: Tensor) -> None:
    x = torch.ones(3, 4, dtype=torch.float64).share_memory_()
    with tensafe.safe_inplace():
        loss = (w * x).sum()
        x.zero_()
        assert torch.equal(grad(loss, w), torch.ones_like(w))


def test_a_small_view_of_a_large_buffer_is_copied_alone() -> None:
    buffer = torch.zeros(1 << 20)
    w = torch.ones(256, requires_grad=True)
    with tensafe.safe_inplace():
        place = buffer.untyped_storage()._cdata
        losses = []
        for step in range(8):
            row = buffer[step * 256 : (step + 1) * 256]
            losses.append((w * row).sum())
            buffer[(step + 1) * 256 :].fill_(step + 1)
            assert not torch._C._is_cow_tensor(buffer)  # type: ignore[attr-defined]
        for step, loss in enumerate(losses):
            assert torch.equal(grad(loss, w), torch.full((256,), float(step)))
        assert buffer.untyped_storage()._cdata == place


def test_subclasses(w: Tensor) -> None:
    class Named(torch.Tensor):
        pass

    seen: list[Any] = []

    class Read(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return w.sum()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:  # type: ignore[override]
            seen.append(ctx.saved_tensors[0])
            return None, torch.ones(3, 4, dtype=torch.float64)

    x = w.detach().clone().as_subclass(Named)
    x.title = "x"  # type: ignore[attr-defined]
    with tensafe.safe_inplace():
        loss = Read.apply(x, w)
        x.zero_()
        loss.backward()
        y = x.detach().requires_grad_().exp()
        assert type(y) is Named
        y.data.zero_()
        y.sum().backward()
    assert torch.equal(seen[0].as_subclass(Tensor), w.detach())
    assert type(seen[0]) is Named
    assert seen[0].title == "x"


def test_layouts_and_modes(w: Tensor) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    with tensafe.safe_inplace():
        sparse = torch.eye(3, dtype=torch.float64).to_sparse()
        assert torch.allclose(grad(torch.sparse.mm(sparse, w).sum(), w), torch.ones_like(w))
        meta = torch.ones(3, device="meta", requires_grad=True)
        assert grad(meta.exp().sum(), meta).is_meta
        with FlopCounterMode(display=False) as flops:
            y = w @ w.t()
            y.data.zero_()
            grad(y.sum(), w)
        ours = flops.get_total_flops()
        with torch.inference_mode():
            (w * 2).add_(1)
        with torch.device("meta"):
            assert torch.equal(spoiled(w), slope(w))
    with FlopCounterMode(display=False) as flops:
        grad((w @ w.t()).sum(), w)
    assert flops.get_total_flops() == ours


def test_tracing_records_nothing_of_ours() -> None:
    net, x = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), torch.ones(1, 2)
    plain = torch.jit.trace(net, x)
    with warnings.catch_warnings(), tensafe.safe_inplace():
        warnings.simplefilter("ignore")
        ours = torch.jit.trace(net, x)
    names = re.compile(r"___torch_mangle_\d+\.")
    assert names.sub("", str(ours.graph)) == names.sub("", str(plain.graph))


def test_nothing_else_changes(w: Tensor) -> None:
    state = torch.get_rng_state()
    with tensafe.safe_inplace():
        y = w.exp()
        versions = (w._version, y._version)
        y.mul_(2)
        assert (w._version, y._version) == (versions[0], versions[1] + 1)
        assert y.grad_fn is not None
        assert not y.is_leaf
    assert torch.equal(torch.get_rng_state(), state)


def test_nothing_is_kept_alive() -> None:
    w = torch.ones(3, requires_grad=True)
    with tensafe.safe_inplace():
        y = w.exp()
        kept = [weakref.ref(y), weakref.ref(y.untyped_storage())]
        x = torch.ones(3)
        loss = (y * x).sum()
        kept += [weakref.ref(x)]
        loss.backward()
        del x, y
        assert [ref() for ref in kept] == [None, None, None]


def test_a_dispatch_subclass_that_cannot_be_kept_raises_as_pytorch_does() -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    x = TwoTensor(torch.ones(3), torch.ones(3)).requires_grad_()
    with tensafe.safe_inplace():
        y = x.exp()
        loss = y * 1
        assert torch.equal(grad(loss.sum(), x).a, torch.ones(3).exp())  # type: ignore[attr-defined]
        y = x.exp()
        y.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            grad(y.sum(), x)
