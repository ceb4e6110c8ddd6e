"""The program's own saved-tensor hooks over ours: theirs get a tensor that nobody writes any more.

Only the innermost pair of hooks runs, so theirs alone would switch value semantics off, and with it, as with
any hooks, PyTorch's own check. Activation checkpointing is such a pair.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tensafe.runtime.graphs.saved import _same_bytes
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.values.hooks import Checked, Hooks, keep, keep_odd
from tensafe.uncompiled import leave_uncompiled

Protection = Callable[[], contextlib.AbstractContextManager[None]]


class OfLeaf(NamedTuple):
    """What their hooks made of a leaf that is trained, and its value at that time."""

    theirs: Any
    leaf: torch.Tensor
    value: torch.Tensor


def composed(theirs: Hooks, protection: Protection, recomputes: bool) -> Hooks:
    """Their hooks over ours. `recomputes`: their unpack hook runs the program's forward again.

    A leaf that is trained, or a view of one, goes to them as it is, as hooks tell parameters by identity;
    everything else as a clone.
    """
    their_pack, their_unpack = theirs

    def pack(tensor: torch.Tensor) -> Any:
        if _is_trained_leaf(tensor):
            return OfLeaf(their_pack(tensor), tensor.detach(), keep(tensor))
        if _filling.calls and not tensor.requires_grad:
            return their_pack(tensor)
        kept = keep_odd(tensor)
        clone = kept.tensor if type(kept) is Checked else kept[0] if type(kept) is tuple else kept
        if tensor.requires_grad and clone is not tensor and not clone.requires_grad:
            clone.requires_grad_()
        return their_pack(clone)

    def unpack(packed: Any) -> torch.Tensor:
        of_leaf = type(packed) is OfLeaf
        with protection() if recomputes else contextlib.nullcontext():
            tensor = their_unpack(packed.theirs if of_leaf else packed)
        return _value_at_save(packed, tensor, recomputes) if of_leaf else tensor

    leave_uncompiled(pack, unpack)
    return pack, unpack


def _is_trained_leaf(tensor: torch.Tensor) -> bool:
    """Whether it is such a leaf or, as a layer's transposed weight, a view of one."""
    if type(tensor) not in PLAIN or not tensor.requires_grad:
        return False
    base = tensor._base
    return (tensor if base is None else base).is_leaf


def _value_at_save(kept: OfLeaf, tensor: torch.Tensor, recomputes: bool) -> torch.Tensor:
    """Their answer for a leaf; where that is the live leaf, the value that it had."""
    if tensor.layout is not torch.strided or kept.leaf.layout is not torch.strided:
        return tensor
    if tensor.untyped_storage() is not kept.leaf.untyped_storage():
        return tensor
    if recomputes and not _same_memory(kept.value, tensor) and not _same_bytes(kept.value, tensor):
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"a leaf of shape {list(tensor.shape)} was changed between the forward and the backward of a "
            "checkpointed region, whose recomputation reads the new values. tensafe: safe_inplace() cannot "
            "give the old ones there; call backward before the leaf is changed, or do without checkpoint()."
        )
    return kept.value


def _same_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are clones of each other that nobody has written since."""
    is_cow: Callable[[torch.Tensor], bool] = torch._C._is_cow_tensor  # type: ignore[attr-defined]
    address = getattr(torch.Tensor, "const_data_ptr", None)
    if address is None or one.shape != other.shape or not (is_cow(one) and is_cow(other)):
        return False
    return bool(address(one) == address(other))


def enter_composed(call: Callable[[Any], Any], theirs: Any, protection: Protection) -> Any:
    """Enter `theirs` (a `saved_tensors_hooks`) by `call`, with its hooks composed over ours."""
    own = theirs.pack_hook, theirs.unpack_hook
    recomputes = type(theirs).__module__ == "torch.utils.checkpoint"
    theirs.pack_hook, theirs.unpack_hook = composed(own, protection, recomputes)
    try:
        return call(theirs)
    finally:
        theirs.pack_hook, theirs.unpack_hook = own


class _OfThread(threading.local):
    calls = 0


_filling = _OfThread()


class Filling:
    """Says when an operation runs that saves an argument and then fills it: theirs get that very one."""

    def install(self, patches: Patches) -> None:
        for owner, name in ((torch, "rrelu"), (torch, "rrelu_"), (torch._C._nn, "rrelu_with_noise")):
            patches.wrap(owner, name, self._fills)

    def _fills(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def fills(*args: Any, **kwargs: Any) -> Any:
            _filling.calls += 1
            try:
                return call(*args, **kwargs)
            finally:
                _filling.calls -= 1

        return functools.update_wrapper(fills, call)
