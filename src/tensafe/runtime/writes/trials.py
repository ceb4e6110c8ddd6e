"""Whether an overlapping write gives wrong values: tried out on fresh memory of the same layout."""

from __future__ import annotations

from typing import Any

import torch

from tensafe.facts import Certainty
from tensafe.memory.from_torch import unwatched
from tensafe.runtime.modes import PLAIN

MOST_ELEMENTS = 4_000_000
TRIED = frozenset({"copy_", "add_", "sub_", "mul_", "div_", "floor_divide_", "remainder_", "pow_"})
ONE_VALUE = frozenset({"fill_", "zero_", "clamp_", "clip_", "relu_", "nan_to_num_"})
CHANGES = frozenset({"sub_", "mul_", "div_", "floor_divide_", "remainder_", "pow_", "lerp_"})


def goes_wrong(name: str, written: torch.Tensor, read: torch.Tensor) -> bool:
    """Whether `written.name(read)` gives other values than with a copy of `read`."""
    if name not in TRIED or written.dtype is not read.dtype or written.device.type != "cpu":
        return False
    count = written.untyped_storage().nbytes() // written.element_size()
    if count > MOST_ELEMENTS:
        return False
    with torch.no_grad(), torch._C.DisableTorchFunction(), unwatched():
        trial = _memory(count, written.dtype)
        expected = trial.clone()
        call = getattr(torch._C.TensorBase, name)
        try:
            call(_laid_out(trial, written), _laid_out(trial, read))
            call(_laid_out(expected, written), _laid_out(expected, read).clone())
        except (RuntimeError, TypeError):
            return False
        return _unequal(trial, expected)


def values_disagree(name: str, written: torch.Tensor, arguments: tuple[Any, ...]) -> Certainty | None:
    """How sure it is that elements in one place should have got different values; None when they need not."""
    if name in ONE_VALUE or (name == "__setitem__" and not isinstance(arguments[-1], torch.Tensor)):
        return None
    if name in ("copy_", "__setitem__"):
        return Certainty.DID if _differs_from(written, arguments[-1]) else None
    if name == "masked_fill_":
        return Certainty.DID if _varies(written, arguments[0]) else None
    if name in CHANGES:
        return Certainty.DID
    return Certainty.MAY if name == "add_" else None


def _differs_from(written: torch.Tensor, value: Any) -> bool:
    """Whether what was just written cannot be read back: elements in one place got different values."""
    if type(value) not in PLAIN or written.device != value.device:
        return False
    with torch.no_grad(), torch._C.DisableTorchFunction(), unwatched():
        expected = value.to(written.dtype).expand(written.shape)
        return _unequal(written, expected)


def _varies(written: torch.Tensor, mask: Any) -> bool:
    """Whether a mask marks some and spares others of the elements in one place."""
    if type(mask) not in PLAIN or mask.dtype is not torch.bool:
        return False
    with torch.no_grad(), torch._C.DisableTorchFunction(), unwatched():
        wide = mask.expand(written.shape)
        for axis, (size, stride) in enumerate(zip(written.shape, written.stride(), strict=True)):
            if size > 1 and stride == 0 and bool((wide != wide.narrow(axis, 0, 1)).any()):
                return True
    return False


def _unequal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(((one != other) & ((one == one) | (other == other))).any())


def _memory(count: int, dtype: torch.dtype) -> torch.Tensor:
    steps = torch.arange(count, dtype=torch.int64, device="cpu") % 97 + 1
    return steps.to(dtype)


def _laid_out(memory: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return memory.as_strided(like.shape, like.stride(), like.storage_offset())
