"""Whom we may ask: plain tensors, while no torch-function mode of the program but a device is active."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._device import DeviceContext

PLAIN = (torch.Tensor, torch.nn.Parameter)
"""A subclass may answer any question with code of its own, so only these are asked."""


def foreign() -> bool:
    """Whether a mode other than `torch.device(...)`, which only places new tensors, is active."""
    stack: Any = torch.overrides._get_current_function_mode_stack()
    return any(type(mode) is not DeviceContext for mode in stack)


def asked() -> bool:
    """Whether a mode of the program would be asked about what we do."""
    return bool(torch._C._len_torch_function_stack()) and foreign()


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """No mode of the program is asked about what we do inside."""
    if not torch._C._len_torch_function_stack() and not torch._C._len_torch_dispatch_stack():
        yield
        return
    with torch.utils._python_dispatch._disable_current_modes(), torch._C.DisableTorchFunction():
        yield
