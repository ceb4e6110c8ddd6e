"""Modules of every sort: each copy computes what the module computes, and is a module of its own."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

import tensafe

X = torch.linspace(-1, 1, 8).view(2, 4)


def quietly(make: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


class Forwarding(nn.Module):
    """Hands attributes of an inner module on, `__deepcopy__` among them."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.fx.symbolic_trace(nn.Linear(4, 4))

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    def forward(self, x: torch.Tensor) -> Any:
        return self.inner(x)


MODULES: dict[str, Callable[[], nn.Module]] = {
    "Linear": lambda: nn.Linear(4, 4),
    "Sequential": lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)).eval(),
    "LSTM": lambda: nn.LSTM(4, 4),
    "attention": lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval(),
    "weight norm": lambda: parametrizations.weight_norm(nn.Linear(4, 4)),
    "spectral norm": lambda: parametrizations.spectral_norm(nn.Linear(4, 4)).eval(),
    "fx": lambda: torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU())),
    "TorchScript": lambda: quietly(lambda: torch.jit.script(nn.Linear(4, 4))),
    "traced": lambda: quietly(lambda: torch.jit.trace(nn.Linear(4, 4), X)),
}
COPIES: dict[str, Callable[[Any], Any]] = {
    "deepcopy": tensafe.deepcopy,
    "compact": tensafe.compact,
    "copy": tensafe.copy,
    "share": lambda module: tensafe.copy(module, memory="share"),
    "keep": lambda module: tensafe.copy(module, graph="keep"),
}


def run(module: nn.Module) -> torch.Tensor:
    output = module(X)
    return output[0] if isinstance(output, tuple) else output


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("kind", MODULES)
def test_the_copy_computes_the_same(kind: str, way: str) -> None:
    module = MODULES[kind]()
    copied = COPIES[way](module)
    assert copied is not module
    assert type(copied).__name__ == type(copy.deepcopy(module)).__name__
    assert torch.equal(run(copied), run(module))
    if way in ("deepcopy", "compact", "copy"):
        before = run(module)
        with torch.no_grad():
            for p in copied.parameters():
                p.zero_()
        assert torch.equal(run(module), before)
        assert len(list(copied.parameters())) == len(list(module.parameters()))


def test_a_module_that_forwards_its_attributes_is_copied_as_stock_does() -> None:
    module = Forwarding()
    stock, ours = copy.deepcopy(module), tensafe.deepcopy(module)
    assert type(stock).__name__ == type(ours).__name__
    assert torch.equal(run(stock), run(ours))


@pytest.mark.parametrize("way", COPIES)
def test_an_uninitialised_module_is_still_to_be_initialised(way: str) -> None:
    module = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    copied = COPIES[way](module)
    assert copied(X).shape == (2, 3)
    assert nn.parameter.is_lazy(module[0].weight)


def test_books_that_two_modules_share_are_shared_in_the_copy() -> None:
    one, other = nn.Linear(1, 1), nn.Linear(1, 1)
    other._forward_hooks = one._forward_hooks
    a, b = tensafe.deepcopy((one, other))
    assert a._forward_hooks is b._forward_hooks
    assert a._forward_pre_hooks is not b._forward_pre_hooks
    held, module = tensafe.deepcopy([one._buffers, one])
    assert held is module._buffers


def test_an_old_module_gains_the_attributes_that_it_lacks() -> None:
    """As through pickle, `__setstate__` adds what newer versions of torch expect."""
    module = nn.Linear(1, 1)
    del module.__dict__["_backward_pre_hooks"]
    assert set(tensafe.deepcopy(module).__dict__) == set(copy.deepcopy(module).__dict__)
