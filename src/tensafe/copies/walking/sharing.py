"""New objects over the same memory: what `copy(memory="share")` makes of tensors and arrays."""

from __future__ import annotations

from typing import Any

import torch

from tensafe.copies.walking.layouts import uninitialised
from tensafe.copies.walking.session import Session

_Parameter = torch.nn.Parameter


def of_detached(x: torch.Tensor, s: Session) -> Any:
    """`x.detach()`; inside a module a Parameter over the same memory."""
    if torch.nn.parameter.is_lazy(x):
        return _noted(x, uninitialised(x), s)
    y: torch.Tensor = x.detach()
    if isinstance(x, _Parameter) and s.in_module:
        y = _Parameter(y, x.requires_grad)
    return _noted(x, y, s)


def of_alias(x: torch.Tensor, s: Session) -> Any:
    """A view of all of x, in the same graph; inside a module the Parameter itself."""
    if torch.nn.parameter.is_lazy(x):
        return _noted(x, uninitialised(x), s)
    if isinstance(x, _Parameter) and s.in_module:
        return _noted(x, x, s)
    with torch.enable_grad():
        return _noted(x, torch.ops.aten.alias.default(x), s)


def of_shared_array(x: Any, s: Session) -> Any:
    """A NumPy view of all of x."""
    return _noted(x, x.view(), s)


def _noted(x: Any, y: Any, s: Session) -> Any:
    s.memo[id(x)] = y
    s.keep(x)
    return y
