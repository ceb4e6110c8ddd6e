"""The memory of a NumPy array: whose it is, where it lies, and whether it has changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tensafe.memory.from_torch import unwatched

MOST_BYTES = 4096

_TENSOR: Any = torch._C.TensorBase


def owner(array: Any) -> Any:
    """The array that a view was taken from, at the very bottom."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def address(array: Any) -> int:
    first: int = array.__array_interface__["data"][0]
    return first


def shares_memory(tensor: torch.Tensor, array: Any) -> bool:
    """Whether a tensor that was just made of an array looks into the array's own memory."""
    return bool(tensor.numel()) and _TENSOR.data_ptr(tensor) == address(array)


def digest(storage: torch.UntypedStorage) -> int:
    """A number that tells whether the bytes are still the same; of a large storage, those of a sample."""
    with torch.no_grad(), torch._C.DisableTorchFunction(), unwatched():
        data: Any = _TENSOR.set_(torch.empty(0, dtype=torch.uint8, device="cpu"), storage)
        step = 1 + data.numel() // MOST_BYTES
        step += step > 1 and not step % 2  # odd, so that the sample meets every byte of an element
        return hash(_TENSOR.numpy(data)[::step].tobytes())
