"""What comes out of a program, held without its graph and compared bitwise."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_map

_plainly_detached = torch._C.TensorBase.detach  # which nobody wraps


def held(outcome: Any) -> Any:
    """What came out, without its graph."""
    return tree_map(lambda item: Held.of(item) if isinstance(item, torch.Tensor) else item, outcome)


class Held(NamedTuple):
    """A tensor that came out, without its graph, and what else can be told of it."""

    value: torch.Tensor
    requires_grad: bool
    kind: str

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Held:
        return cls(_plainly_detached(tensor), tensor.requires_grad, type(tensor).__name__)

    def digest(self) -> tuple[Any, ...]:
        value = self.value
        told = (self.kind, self.requires_grad, value.dtype, tuple(value.shape), value._version)
        if value.layout is not torch.strided or value.is_nested or value.is_quantized or value.is_meta:
            return (*told, str(value))
        elements = (
            value.resolve_conj()
            .resolve_neg()
            .clone(memory_format=torch.contiguous_format)
            .reshape(-1)
            .view(torch.uint8)
        )
        values = hashlib.sha256(elements.numpy().tobytes()).hexdigest()[:16]
        return (*told, value.stride(), value.storage_offset(), values)


def told(item: Any) -> Any:
    if isinstance(item, Held):
        return item.digest()
    if isinstance(item, dict):
        return tuple(sorted((str(key), told(value)) for key, value in item.items()))
    if isinstance(item, list | tuple):
        return tuple(told(part) for part in item)
    return item if isinstance(item, str | int | bool) else repr(item)
