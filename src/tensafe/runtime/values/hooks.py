"""Saved-tensor hooks that give autograd value semantics: what backward reads is what was there at the save.

The pack hook keeps a copy-on-write clone (`torch._lazy_clone`): no bytes until somebody writes, and then the
writer pays, by whatever route it writes. Memory that cannot be cloned so is copied; a tensor that can be
neither cloned nor copied is kept under PyTorch's own check, and raises what PyTorch would raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.autograd.function import BackwardCFunction

from tensafe.runtime.modes import PLAIN
from tensafe.uncompiled import leave_uncompiled

RATIO_FROM_NBYTES = 1 << 20
RATIO_LIMIT = 16
"""A saved view this many times smaller than its storage is copied: the storage's next write would copy it
whole, once for every view saved in between (a rollout buffer, a key-value cache)."""

COPIED = "_tensafe_copied"
"""On a storage: it is copied when saved, as somebody holds a pointer or it cannot be cloned lazily."""

Hooks = tuple[Callable[[torch.Tensor], Any], Callable[[Any], torch.Tensor]]


class Checked(NamedTuple):
    """A tensor that could only be kept as it is: a change of its version is an error, as in plain PyTorch."""

    tensor: torch.Tensor
    version: int


WRITTEN_AFTER_SAVE = frozenset({"RreluWithNoiseBackward0", "RreluWithNoiseBackward1"})
"""Backward nodes of operations that save an argument first and fill it afterwards."""

NEEDS_ORDINARY = frozenset({"CtcLossBackward0"})
"""Backward kernels that take a mutable pointer inside a parallel loop, where a copy-on-write storage may not
take its own copy (c10/core/impl/COW.cpp asserts)."""

_AS_IT_IS, _FRESH, _ORDINARY, _ORIGINAL = range(4)


class _Ways(dict[type, int]):
    """How to hand out what a C++ node saved, by the type of the node."""

    def __missing__(self, kind: type) -> int:
        if kind is type(None) or issubclass(kind, BackwardCFunction):
            return _FRESH  # the program's own code reads it: what that code does to it stays there
        way = _AS_IT_IS
        if kind.__name__ in WRITTEN_AFTER_SAVE:
            way = _ORIGINAL
        elif kind.__name__ in NEEDS_ORDINARY:
            way = _ORDINARY
        self[kind] = way
        return way


def make_hooks() -> Hooks:
    """The pair; all names of the hot path are locals."""
    lazy_clone: Callable[[torch.Tensor], torch.Tensor] = torch._lazy_clone
    dispatch_modes = torch._C._len_torch_dispatch_stack
    function_modes = torch._C._len_torch_function_stack
    tracing: Callable[[], Any] = torch._C._get_tracing_state
    node: Callable[[], Any] = torch._C._current_autograd_node
    plain, parameter = PLAIN
    copied, ratio_from, small, odd = COPIED, RATIO_FROM_NBYTES, _is_small_view, keep_odd
    ways = _Ways()

    def pack(tensor: torch.Tensor) -> Any:
        kind = type(tensor)
        if (kind is plain or kind is parameter) and not (dispatch_modes() or function_modes() or tracing()):
            try:
                storage = tensor.untyped_storage()
                if (
                    storage.resizable()
                    and copied not in storage.__dict__
                    and (storage.nbytes() < ratio_from or not small(tensor, storage))
                ):
                    clone = lazy_clone(tensor)
                    return clone if tensor.requires_grad else (clone, tensor)
            except (RuntimeError, NotImplementedError):
                pass
        return odd(tensor)

    def unpack(packed: Any) -> torch.Tensor:
        way = ways[type(node())]
        if type(packed) is tuple:
            packed = packed[way == _ORIGINAL]
        elif type(packed) is Checked:
            return _checked(packed)
        if way == _FRESH:
            return keep(packed)
        if way == _ORDINARY:
            _own_bytes(packed)
        return packed  # type: ignore[no-any-return]

    leave_uncompiled(pack, unpack)
    return pack, unpack


def keep_odd(tensor: torch.Tensor) -> Any:
    """What the pack hook keeps of a tensor outside the common case."""
    if _answers_itself(tensor):
        return Checked(tensor if tensor.is_leaf else tensor.detach(), tensor._version)
    clone = keep(tensor)
    return clone if tensor.requires_grad else (clone, tensor)


def keep(tensor: torch.Tensor) -> torch.Tensor:
    """The value of a tensor as it is now, whatever is written later; no mode or tracer sees how."""
    tracer: Any = torch._C
    state = tracer._get_tracing_state()
    if state is not None:
        tracer._set_tracing_state(None)
    try:
        with torch.no_grad(), torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            value = _value_of(tensor)
            return value if type(tensor) in PLAIN else _dressed(value, tensor)
    finally:
        if state is not None:
            tracer._set_tracing_state(state)


def make_copied(storage: torch.UntypedStorage) -> None:
    """From now on this storage is copied when it is saved."""
    storage.__dict__[COPIED] = True


def _answers_itself(tensor: torch.Tensor) -> bool:
    """A subclass with `__torch_dispatch__`, or a functorch wrapper: its elements are not where they seem."""
    dispatch = type(tensor).__torch_dispatch__
    return dispatch is not torch._C._disabled_torch_dispatch_impl or (
        torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    )


def _value_of(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.layout is not torch.strided or tensor.is_nested:
        return tensor.detach().clone()
    storage = tensor.untyped_storage()
    if not storage.resizable() or COPIED in storage.__dict__ or _is_small_view(tensor, storage):
        return _copy(tensor)
    try:
        return torch._lazy_clone(tensor)
    except RuntimeError:
        make_copied(storage)
        return _copy(tensor)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, where it does not cost much more than the elements alone."""
    tensor = tensor.detach()
    span = 1 + sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size
    )
    lazy_bits = tensor.is_conj() or tensor.is_neg() or tensor.is_quantized
    if lazy_bits or not tensor.numel() or span > 2 * tensor.numel():
        return tensor.clone()
    piece = tensor.as_strided((span,), (1,), tensor.storage_offset())
    return piece.clone().as_strided(tensor.shape, tensor.stride(), 0)


def _dressed(value: torch.Tensor, original: torch.Tensor) -> torch.Tensor:
    """A subclass without a dispatch of its own keeps its type and attributes."""
    dressed = value.as_subclass(type(original))
    dressed.__dict__.update(original.__dict__)
    return dressed


def _is_small_view(tensor: torch.Tensor, storage: torch.UntypedStorage) -> bool:
    nbytes = storage.nbytes()
    return nbytes > RATIO_FROM_NBYTES and nbytes > RATIO_LIMIT * tensor.numel() * tensor.element_size()


def _own_bytes(tensor: torch.Tensor) -> None:
    torch._C.TensorBase.data_ptr(tensor)


def _checked(kept: Checked) -> torch.Tensor:
    tensor, version = kept
    if tensor._version != version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{type(tensor).__name__} {list(tensor.shape)}] is at version {tensor._version}; expected "
            f"version {version} instead. tensafe: safe_inplace() cannot keep the old values of this tensor "
            "class. Use the out-of-place form there, or write to a clone()."
        )
    return tensor
