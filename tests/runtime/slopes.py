"""Gradients for the tests of value semantics."""

from __future__ import annotations

import threading
from typing import Any

import torch

Tensor = torch.Tensor


def slope(w: Tensor) -> Tensor:
    """The derivative of `exp(w).sum()`."""
    return w.detach().exp()


def grad(loss: Tensor, w: Tensor, **more: Any) -> Tensor:
    (gradient,) = torch.autograd.grad(loss, w, **more)
    return gradient


def spoiled(w: Tensor) -> Tensor:
    """A gradient that only value semantics get right."""
    y = w.exp()
    y.data.zero_()
    return grad(y.sum(), w)


def is_clean() -> bool:
    """No patch and no hook is left."""
    assert "data_ptr" not in vars(torch.Tensor)
    assert torch.autograd.graph.saved_tensors_hooks.__enter__.__module__ == "torch.autograd.graph"
    assert threading.Thread.start.__module__ == "threading"
    with torch.autograd.graph.disable_saved_tensors_hooks("none are active"):
        return True
