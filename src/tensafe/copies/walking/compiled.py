"""The C half of this folder, where it was compiled: what `trees` and `batches` do in Python, but faster."""

from __future__ import annotations

from collections import OrderedDict
from itertools import repeat
from operator import is_
from types import GetSetDescriptorType, MethodDescriptorType, ModuleType
from typing import Any

import torch

from tensafe.copies.fresh import LARGE_NBYTES
from tensafe.copies.walking.objects import ATOMS, TORCH_ATOMS

_GETTERS: tuple[Any, Any, Any] = (torch.Tensor.requires_grad, torch.Tensor.grad, torch.Tensor.nbytes)
_METHODS: tuple[Any, Any, Any] = (
    torch.Tensor.untyped_storage,
    torch.Tensor.is_contiguous,
    torch.UntypedStorage.nbytes,
)

_INTERFACE = 1
"""What the module must say of itself: it may have been compiled from another state of the sources."""


def _prepared() -> ModuleType | None:
    """The module; None where it was not compiled, or this torch asks its tensors in another way."""
    try:
        from tensafe.copies.walking import _plain
    except ImportError:
        return None
    if getattr(_plain, "INTERFACE", None) != _INTERFACE:
        return None
    are_usual = [type(one) is GetSetDescriptorType for one in _GETTERS]
    are_usual += [type(one) is MethodDescriptorType for one in _METHODS]
    if not all(are_usual):
        return None
    kinds = (torch.Tensor, torch.nn.Parameter, OrderedDict)
    _plain.prepare(*kinds, ATOMS | TORCH_ATOMS, ATOMS, *_GETTERS, *_METHODS, LARGE_NBYTES)
    return _plain


plain: Any = _prepared()


def all_give(objects: list[Any], *conditions: Any) -> bool:
    """Whether attributes, or methods without arguments, give what is expected of all; not where one raises.

    Args:
        conditions: descriptors, as the class holds them, each followed by the very object that it is to give:
            `torch.Tensor.is_meta, False`.
    """
    if plain is not None:
        return plain.all_give(objects, conditions)  # type: ignore[no-any-return]
    pairs = zip(conditions[::2], conditions[1::2], strict=True)
    try:
        return all(all(map(is_, map(_asking(one), objects), repeat(expected))) for one, expected in pairs)
    except RuntimeError:
        return False


def _asking(descriptor: Any) -> Any:
    return descriptor if callable(descriptor) else descriptor.__get__
