"""Trees of tensors with views of every sort, as strategies and as plain facts about what torch loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

DTYPES = [torch.float32, torch.int64, torch.bfloat16, torch.uint8, torch.bool, torch.complex64, torch.uint16]


@st.composite
def bases(draw: st.DrawFn) -> torch.Tensor:
    """A tensor of its own storage, every element different where its dtype allows."""
    shape = draw(st.lists(st.integers(0, 6), max_size=3))
    numbers = torch.arange(int(np.prod(shape)) or 0).reshape(shape)
    return numbers.to(draw(st.sampled_from(DTYPES)))


@st.composite
def views(draw: st.DrawFn, base: torch.Tensor) -> torch.Tensor:
    """Some steps from a tensor to another over the same storage."""
    view = base
    for _ in range(draw(st.integers(0, 3))):
        step = draw(st.sampled_from(["slice", "transpose", "expand", "stride", "select", "detach"]))
        if step == "transpose" and view.dim() > 1:
            view = view.transpose(0, draw(st.integers(1, view.dim() - 1)))
        elif step == "expand" and view.dim() < 4:
            view = view.unsqueeze(0).expand(draw(st.integers(1, 3)), *view.shape)
        elif view.dim() and step in ("slice", "stride", "select"):
            dim = draw(st.integers(0, view.dim() - 1))
            size = view.shape[dim]
            start = draw(st.integers(0, size))
            if step == "select" and start < size:
                view = view.select(dim, start)
            else:
                length = draw(st.integers(0, size - start))
                index = [slice(None)] * view.dim()
                index[dim] = slice(start, start + length, draw(st.integers(1, 3)) if step == "stride" else 1)
                view = view[tuple(index)]
        else:
            view = view.detach()
    return view


@st.composite
def trees(draw: st.DrawFn) -> Any:
    """Dicts and lists of tensors, several of them over one storage, some the very same object."""
    roots = draw(st.lists(bases(), min_size=1, max_size=3))
    leaves: list[torch.Tensor] = []
    for _ in range(draw(st.integers(1, 6))):
        if leaves and draw(st.integers(0, 4)) == 0:
            leaves.append(draw(st.sampled_from(leaves)))
        else:
            leaves.append(draw(views(draw(st.sampled_from(roots)))))
    if draw(st.booleans()):
        leaves.append(torch.nn.Parameter(torch.ones(5)[draw(st.integers(0, 3)) :]))
    if draw(st.booleans()):
        return {f"layer.{index}": leaf for index, leaf in enumerate(leaves)}
    half = len(leaves) // 2
    return {
        "model": {"fc.weight": leaves[0]},
        "list": [tuple(leaves[:half]), leaves[half:], 3.5, "text", None],
    }


def leaves_of(tree: Any) -> Iterator[torch.Tensor]:
    """The tensors of a tree in order, one that stands there twice both times."""
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from leaves_of(value)
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            yield from leaves_of(value)


def addresses(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The place of every byte of every element within the storage."""
    places = np.full((1,), tensor.storage_offset() * tensor.element_size(), dtype=np.int64)
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        steps = np.arange(size, dtype=np.int64) * stride * tensor.element_size()
        places = (places[:, None] + steps[None, :]).reshape(-1)
    return (places[:, None] + np.arange(tensor.element_size())[None, :]).reshape(-1)


def sharing(tree: Any) -> list[int]:
    """A number for every byte of every element: equal numbers are the same byte of the same storage."""
    known: dict[tuple[int, int], int] = {}
    found = []
    for leaf in leaves_of(tree):
        storage = leaf.untyped_storage()._cdata
        found += [known.setdefault((storage, int(place)), len(known)) for place in addresses(leaf)]
    return found


def raw(tensor: torch.Tensor) -> bytes:
    """The elements in order, as bytes."""
    if not tensor.numel():
        return b""
    plain = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor.detach())
    return plain.view(-1).view(torch.uint8).numpy().tobytes()


def stored_nbytes(tree: Any) -> int:
    """Bytes of all storages, each once."""
    storages = {leaf.untyped_storage()._cdata: leaf.untyped_storage().nbytes() for leaf in leaves_of(tree)}
    return sum(storages.values())


def viewed_nbytes(tree: Any) -> int:
    """Bytes that some tensor reaches, each once."""
    return len(set(sharing(tree)))
