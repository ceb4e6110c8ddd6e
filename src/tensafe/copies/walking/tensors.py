"""Deep copies of tensors: each storage once, every view on it where it was."""

from __future__ import annotations

from typing import Any

import torch

from tensafe.copies.fresh import LARGE_NBYTES, clone_of, seat, storage_copy, unrecorded
from tensafe.copies.walking.batches import copy_beforehand
from tensafe.copies.walking.layouts import by_own_method, is_plain
from tensafe.copies.walking.objects import copied
from tensafe.copies.walking.session import MISSING, Session
from tensafe.errors import TensafeError

_Parameter = torch.nn.Parameter
_set_recording = torch._C._set_grad_enabled
_is_recording = torch.is_grad_enabled
_clone: Any = torch._C._VariableFunctions.clone  # as `torch.clone` may be wrapped while a program is watched


class NonLeafError(TensafeError, RuntimeError):
    """A tensor with a graph met a copy that keeps none; `copy.deepcopy` raises a `RuntimeError` there."""


class NonLeafFound(Exception):
    """A non-leaf tensor was met; the place in the object is looked up where the error leaves us."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__()
        self.tensor = tensor


def of_first_tensor(x: torch.Tensor, s: Session) -> Any:
    """The first tensor of a session: from here on the session knows what is in force."""
    begin(s)
    if s.root is not x and s.copiers[torch.Tensor] is of_tensor and not s.grads:
        copy_beforehand(s)
        found = s.memo.get(id(x), MISSING)
        if found is not MISSING:
            return found
    return s.copiers[type(x)](x, s)


def begin(s: Session) -> None:
    """Open the memo's table of storages, and choose how tensors are copied in what is in force."""
    s.storages = s.memo.setdefault("torch", {})
    if is_observed():
        s.copiers[torch.Tensor] = s.copiers[_Parameter] = by_own_method
    else:
        s.copiers[torch.Tensor] = of_tensor
        s.copiers[_Parameter] = of_parameter


def is_observed() -> bool:
    """Whether a mode, a transform or a tracer would see or change what we do with tensors."""
    return bool(
        torch._C._len_torch_function_stack()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._get_tracing_state() is not None
    )


def of_tensor(x: torch.Tensor, s: Session) -> Any:
    """A tensor of exactly this type, with gradient and attributes, as `copy.deepcopy` keeps them."""
    if x.requires_grad:
        return _of_graded(x, s)
    try:
        storage = x.untyped_storage()
        is_whole = storage.nbytes() == x.nbytes < LARGE_NBYTES and x.is_contiguous() and not x.is_quantized
    except (NotImplementedError, RuntimeError):  # no storage, or no strides: sparse and opaque layouts
        return by_own_method(x, s)
    if not is_whole or id(storage) in s.own or (s.storages and storage._cdata in s.storages):
        return _of_odd(x, s)
    try:
        y = _clone(x)
    except (NotImplementedError, RuntimeError):  # a dtype that has bytes and nothing else
        return _of_odd(x, s)
    s.memo[id(x)] = y
    s.own[id(storage)] = x
    s.keep(x)
    if x.grad is not None or x.__dict__:
        _give_attributes(y, x, s)
    return y


def _of_odd(x: torch.Tensor, s: Session) -> Any:
    """A tensor that is large, no plain memory, or not alone in its storage."""
    if not is_plain(x):
        return by_own_method(x, s)
    s.memo[id(x)] = y = values_of(x, s)
    s.keep(x)
    _give_attributes(y, x, s)
    return y


def _of_graded(x: torch.Tensor, s: Session) -> Any:
    if not x.is_leaf:
        return of_non_leaf(x, s)
    if not is_plain(x):
        return by_own_method(x, s)
    before = _is_recording()
    _set_recording(False)
    try:
        y = values_of(x, s)
    finally:
        _set_recording(before)
    s.memo[id(x)] = y.requires_grad_()
    s.keep(x)
    _give_attributes(y, x, s)
    return y


def _give_attributes(y: torch.Tensor, x: torch.Tensor, s: Session) -> None:
    if x.grad is not None:
        y.grad = copied(x.grad, s)
    if x.__dict__:
        y.__dict__ = copied(x.__dict__, s)


def of_parameter(x: torch.nn.Parameter, s: Session) -> Any:
    """A Parameter; like `copy.deepcopy`, without its gradient (unless asked for) and attributes."""
    before = _is_recording()
    _set_recording(False)
    try:
        y = _parameter_values(x, s)
    except (NotImplementedError, RuntimeError):  # no storage, or no strides: sparse and opaque layouts
        return by_own_method(x, s)
    finally:
        _set_recording(before)
    y.__class__ = _Parameter
    if x.requires_grad:
        y.requires_grad = True
    s.memo[id(x)] = y
    s.keep(x)
    if s.grads and x.grad is not None:
        y.grad = copied(x.grad, s)
    return y


def _parameter_values(x: torch.nn.Parameter, s: Session) -> torch.Tensor:
    """As `values_of`, but a Parameter that is alone in a larger storage takes only its own elements.

    `copy.deepcopy` clones every Parameter by itself and so breaks what lies in one flat buffer.
    """
    storage = x.untyped_storage()
    if id(storage) in s.own or storage._cdata in s.storages:
        return values_of(x, s)
    if storage.nbytes() != x.nbytes:
        return values_of(x, s) if _shares_storage(x, s) else clone_of(x)
    if x.is_contiguous() and x.nbytes < LARGE_NBYTES:
        y: torch.Tensor = _clone(x)
        s.memo[id(x)] = y
        s.own[id(storage)] = x
        return y
    return values_of(x, s)


def values_of(x: torch.Tensor, s: Session) -> torch.Tensor:
    """A tensor without history on the copy of x's storage, at x's place in it."""
    storage = x.untyped_storage()
    key = storage._cdata
    s.lend()
    known = s.storages.get(key, MISSING)
    if known is MISSING:
        y = _whole(x) if storage.nbytes() == x.nbytes else None
        if y is not None:
            s.storages[key] = y.untyped_storage()
            return y
        known = s.storages[key] = storage_copy(storage)
    return on_storage(known, x)


def _whole(x: torch.Tensor) -> torch.Tensor | None:
    """A clone of a tensor as large as its storage, None where it would not lie as x does."""
    if x.is_conj() or x.is_neg():
        return None
    try:
        y = clone_of(x)
    except (NotImplementedError, RuntimeError):
        return None
    return y if y.stride() == x.stride() else None


def on_storage(storage: torch.UntypedStorage, x: torch.Tensor) -> torch.Tensor:
    """A tensor at x's place in another storage."""
    y = torch.empty(0, dtype=x.dtype, device=x.device)
    seat(y, storage, x)
    return y


def _shares_storage(x: torch.Tensor, s: Session) -> bool:
    from tensafe.copies.plan import shares_storage  # a plan is rarely needed: it walks everything once more

    return shares_storage(x, s)


def of_non_leaf(x: torch.Tensor, s: Session) -> Any:
    """A tensor with a graph: refused, or its values, or a copy in the same graph."""
    if s.graph == "raise":
        raise NonLeafFound(x)
    if s.graph == "keep":
        y = differentiable(x, s)
    elif is_plain(x):
        with unrecorded():
            y = values_of(x, s)
    else:
        y = x.detach().clone()
    s.memo[id(x)] = y
    s.keep(x)
    if x.__dict__:
        y.__dict__ = copied(x.__dict__, s)
    return y


def differentiable(x: torch.Tensor, s: Session) -> torch.Tensor:
    """A copy through which gradients reach x; views of one base are views of one copy."""
    with torch.enable_grad():
        base = x._base
        if base is None or base.is_leaf or not is_plain(x):
            return x.clone()
        offset = x.storage_offset() - base.storage_offset()
        copy_of_base: torch.Tensor = copied(base, s)
        if base.is_contiguous() and offset >= 0 and copy_of_base.is_contiguous():
            return copy_of_base.as_strided(x.size(), x.stride(), copy_of_base.storage_offset() + offset)
        return x.clone()
