"""Deep copies of the tensors that are no plain strided memory, each by the method that fits it."""

from __future__ import annotations

from typing import Any

import torch

from tensafe.copies.walking.session import MISSING, Session

_STRIDED = torch.strided
_MKLDNN: Any = torch._mkldnn  # type: ignore[attr-defined]
_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
_WITHOUT_STORAGE = frozenset([torch.sparse_coo, *_COMPRESSED, _MKLDNN])
"""Layouts that stock `__deepcopy__` of a Tensor or a Parameter refuses, though `clone()` copies them."""

_NO_DEFAULT = "The default implementation of __deepcopy__()"


def is_plain(x: torch.Tensor) -> bool:
    """Whether it is elements at strides in a storage of its own device, and nothing more."""
    return x.layout is _STRIDED and (x.is_cpu or x.is_cuda) and not x.is_quantized and not x.is_nested


def by_own_method(x: Any, s: Session) -> Any:
    """By `__deepcopy__` of PyTorch, or by `clone()` where that has none for the layout."""
    if s.graph != "raise" and not x.is_leaf:
        from tensafe.copies.walking.tensors import of_non_leaf

        return of_non_leaf(x, s)
    if x.layout in _WITHOUT_STORAGE or (x.is_nested and x.layout is _STRIDED):
        y = _copy_of(x, s)
    else:
        y = x.__deepcopy__(s.lend())
    return _noted(x, y, s)


def _noted(x: Any, y: Any, s: Session) -> Any:
    """Enter a copy, with the gradient that `__deepcopy__` of a Parameter leaves out, if that is asked for."""
    if y is x:
        return y
    s.memo[id(x)] = y
    s.keep(x)
    if s.grads and isinstance(x, torch.nn.Parameter) and not torch.nn.parameter.is_lazy(x):
        _give_gradient(x, y, s)
    return y


def _give_gradient(x: Any, y: Any, s: Session) -> None:
    from tensafe.copies.walking.objects import copied

    if type(y) is type(x) and x.is_leaf and x.grad is not None and y.grad is None:
        y.grad = copied(x.grad, s)


def _copy_of(x: torch.Tensor, s: Session) -> torch.Tensor:
    """By `clone()`, with gradient and attributes."""
    from tensafe.copies.walking.objects import copied

    y: torch.Tensor = cloned(x)
    is_parameter = type(x) is torch.nn.Parameter
    if is_parameter:
        y = torch.nn.Parameter(y, x.requires_grad)
    else:
        y.requires_grad_(x.requires_grad)
    s.memo[id(x)] = y
    if x.grad is not None and (s.grads or not is_parameter):
        y.grad = copied(x.grad, s)
    if x.__dict__ and not is_parameter:
        y.__dict__ = copied(x.__dict__, s)
    return y


def cloned(x: torch.Tensor) -> torch.Tensor:
    """`x.detach().clone()` of a tensor without plain memory."""
    detached: Any = x.detach()
    with torch.no_grad():
        try:
            return detached.clone()  # type: ignore[no-any-return]
        except (RuntimeError, NotImplementedError):  # quantised per channel with floating-point zero points
            return detached.__deepcopy__({})  # type: ignore[no-any-return]


def of_subclass(x: Any, s: Session) -> Any:
    """A tensor of another class: by its own `__deepcopy__`, by PyTorch's, or else as plain memory."""
    if s.each is not None:
        return s.each(x, s)
    return _noted(x, uninitialised(x) if torch.nn.parameter.is_lazy(x) else _of_class(x, s), s)


def uninitialised(x: Any) -> Any:
    """Uninitialised Parameters and buffers have no elements; stock `__deepcopy__` of the latter raises."""
    return type(x)(requires_grad=x.requires_grad, device=x.data.device, dtype=x.data.dtype)


def _of_class(x: Any, s: Session) -> Any:
    from tensafe.copies.walking.tensors import NonLeafFound, begin, of_tensor

    kind = type(x)
    if kind.__deepcopy__ is torch.Tensor.__deepcopy__ and not x.is_leaf:
        if s.graph == "raise":
            raise NonLeafFound(x)
        return x.clone() if s.graph == "keep" else x.detach().clone()
    try:
        return x.__deepcopy__(s.lend())
    except RuntimeError as error:
        if _NO_DEFAULT not in str(error) or (hasattr(kind, "__torch_dispatch__") and _dispatches(kind)):
            raise
    if s.storages is MISSING:
        begin(s)
    with torch._C.DisableTorchFunctionSubclass():
        y = of_tensor(x, s)
        return y.as_subclass(kind) if type(y) is torch.Tensor else y


def _dispatches(kind: type) -> bool:
    return kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl  # type: ignore[attr-defined]
