"""The names that stand in a stream; `tensafe.loads` gives them their meaning."""

from __future__ import annotations

from typing import Any

import torch

from tensafe.copies.pickling.errors import UnpicklingError


def value(number: int) -> Any:
    """The tensor, array or storage of this number; what stands here is for a reader that knows none."""
    raise UnpicklingError(
        f"value {number} lies in the container around this stream: read it with tensafe.loads"
    )


def typed_storage(storage: torch.UntypedStorage, dtype: torch.dtype) -> torch.TypedStorage:
    """A typed storage over an untyped one."""
    return torch.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def subclass(tensor: torch.Tensor, kind: type[torch.Tensor], requires_grad: bool) -> torch.Tensor:
    """A tensor as one of a subclass that keeps nothing but the tensor and its attributes."""
    made: torch.Tensor = tensor.as_subclass(kind)
    return made.requires_grad_(True) if requires_grad else made


def set_state(tensor: torch.Tensor, state: Any) -> None:
    """Give back the attributes that the program had set on a tensor."""
    torch._utils._set_obj_state(tensor, state)
