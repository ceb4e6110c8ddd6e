"""Two objects compared: types, values, identities inside, and who sees a write."""

from __future__ import annotations

import copyreg
import enum
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, enum.Enum)
IMMUTABLE = (
    *(int, float, complex, str, bytes, bool, type(None), type, range, torch.dtype, torch.device, torch.Size),
)


def children(value: Any) -> Iterator[tuple[Any, Any]]:
    """Steps and what they lead to, in order."""
    if isinstance(value, dict):
        for index, (key, held) in enumerate(value.items()):
            yield ("key", index), key
            yield ("item", index), held
    elif isinstance(value, (list, tuple)):
        yield from enumerate(value)
    elif isinstance(value, (set, frozenset)):
        yield from enumerate(sorted(value, key=repr))
    if isinstance(value, torch.Tensor) and value.is_leaf and value.grad is not None:
        yield "grad", value.grad
    yield from sorted(getattr(value, "__dict__", {}).items()) if not isinstance(value, type) else ()
    for slot in copyreg._slotnames(type(value)):  # type: ignore[attr-defined]
        if hasattr(value, slot):
            yield slot, getattr(value, slot)


def assert_twins(one: Any, other: Any) -> None:
    """The same types and values everywhere, and the same object at two places in one as in the other."""
    pairs: dict[int, int] = {}
    back: dict[int, int] = {}
    kept = []
    queue = [("root", one, other)]
    while queue:
        place, a, b = queue.pop()
        kept.append((a, b))
        assert type(a) is type(b), f"{place}: {type(a)} is not {type(b)}"
        if isinstance(a, (*IMMUTABLE, *FUNCTIONS)):
            assert a is b or a == b, place
            continue
        if id(a) in pairs or id(b) in back:
            assert pairs.get(id(a)) == id(b), f"{place}: another object than at its other place"
            assert back.get(id(b)) == id(a), f"{place}: one object at two places of two"
            continue
        if not (isinstance(a, (tuple, frozenset)) and a is b):
            pairs[id(a)], back[id(b)] = id(b), id(a)
        assert_same_values(a, b, place)
        ours, theirs = list(children(a)), list(children(b))
        assert [step for step, _ in ours] == [step for step, _ in theirs], place
        queue += [(f"{place}.{step}", c, d) for (step, c), (_, d) in zip(ours, theirs, strict=True)]


def assert_same_values(a: Any, b: Any, place: str) -> None:
    if isinstance(a, np.ndarray):
        assert np.array_equal(a, b), place
    if not isinstance(a, torch.Tensor):
        return
    assert a.requires_grad == b.requires_grad, place
    assert a.is_leaf == b.is_leaf, place
    assert (a.dtype, a.device, a.layout, a.shape) == (b.dtype, b.device, b.layout, b.shape), place
    if a.layout is torch.strided:
        assert a.stride() == b.stride(), place
        assert a.storage_offset() == b.storage_offset(), place
        assert a.untyped_storage().nbytes() == b.untyped_storage().nbytes(), place
        assert not b.untyped_storage().is_shared(), place
        assert not b._is_view(), place
        assert torch.equal(bytes_of(a), bytes_of(b)), place
    else:
        assert torch.equal(a.to_dense(), b.to_dense()), place


def bytes_of(x: torch.Tensor) -> torch.Tensor:
    """All bytes of the storage."""
    storage = x.untyped_storage()
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))


def tensors_in(root: Any) -> list[torch.Tensor]:
    """Each tensor once, in the order of a walk."""
    found: dict[int, torch.Tensor] = {}
    seen: dict[int, Any] = {}
    queue = [root]
    while queue:
        value = queue.pop(0)
        if id(value) in seen or isinstance(value, IMMUTABLE):
            continue
        seen[id(value)] = value
        if isinstance(value, torch.Tensor):
            found[id(value)] = value
        queue += [held for _, held in children(value)]
    return list(found.values())


def sharing(root: Any) -> list[list[int]]:
    """For each tensor, which ones change when every byte of it is written; the values are put back."""
    tensors = [tensor.detach() for tensor in tensors_in(root) if tensor.layout is torch.strided]
    table = []
    for tensor in tensors:
        kept = [one.untyped_storage().clone() for one in tensors]
        before = [one.clone() for one in tensors]
        if tensor.dtype is torch.bool:
            tensor.logical_not_()
        else:
            tensor.copy_(tensor.clone() + 1)
        table.append([i for i, one in enumerate(tensors) if not torch.equal(one, before[i])])
        for one, bytes_ in zip(tensors, kept, strict=True):
            one.untyped_storage().copy_(bytes_)
    return table


def assert_apart(source: Any, copied: Any) -> None:
    """No byte of the copy lies in memory of the source."""
    theirs = {
        tensor.untyped_storage().data_ptr() for tensor in tensors_in(source) if tensor.layout is torch.strided
    }
    theirs.discard(0)
    for tensor in tensors_in(copied):
        if tensor.layout is torch.strided:
            assert tensor.untyped_storage().data_ptr() not in theirs
