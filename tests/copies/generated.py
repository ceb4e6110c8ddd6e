"""Trees of tensors and arrays with aliases, made by hypothesis, and what is compared between two of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import torch
from hypothesis import strategies as st

DTYPES = (torch.float32, torch.float64, torch.int64, torch.uint8, torch.bfloat16, torch.bool, torch.complex64)


@st.composite
def pools(draw: st.DrawFn) -> list[Any]:
    """A few memories, each with several tensors or arrays that look into it."""
    found: list[Any] = []
    for number in range(draw(st.integers(1, 3))):
        shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
        dtype = draw(st.sampled_from(DTYPES))
        base = (torch.arange(int(numpy.prod(shape))) + number).reshape(shape).to(dtype)
        views = [base]
        for _ in range(draw(st.integers(0, 3))):
            views.append(draw(views_of(draw(st.sampled_from(views)))))
        found += [draw(dressed(view)) for view in views]
    return found


@st.composite
def views_of(draw: st.DrawFn, tensor: torch.Tensor) -> torch.Tensor:
    """Another look into the same memory."""
    if not tensor.dim():
        return tensor.detach()
    axis = draw(st.integers(0, tensor.dim() - 1))
    kind = draw(st.sampled_from(["slice", "steps", "select", "transpose", "expand", "alias"]))
    size = tensor.shape[axis]
    if kind == "slice":
        return tensor.narrow(axis, *_part(size, draw(st.integers(0, size)), draw(st.integers(0, size))))
    if kind == "steps":
        return tensor[(slice(None),) * axis + (slice(None, None, 2),)]
    if kind == "select" and size:
        return tensor.select(axis, draw(st.integers(0, size - 1)))
    if kind == "transpose":
        return tensor.transpose(axis, 0)
    if kind == "expand":
        return tensor.unsqueeze(0).expand(2, *tensor.shape)
    return tensor.detach()


def _part(size: int, start: int, length: int) -> tuple[int, int]:
    return start, min(length, size - start)


@st.composite
def dressed(draw: st.DrawFn, tensor: torch.Tensor) -> Any:
    """The view as it is, as an array, as an array read backwards, as a parameter."""
    kind = draw(st.sampled_from(["tensor", "tensor", "array", "backwards", "parameter"]))
    if kind in ("array", "backwards") and tensor.dtype is not torch.bfloat16:
        array = tensor.numpy()
        return array[::-1] if kind == "backwards" and array.ndim else array
    if kind == "parameter" and tensor.is_floating_point():
        return torch.nn.Parameter(tensor, requires_grad=draw(st.booleans()))
    return tensor


@st.composite
def trees(draw: st.DrawFn) -> Any:
    """Containers over one pool, the same objects in several places."""
    pool = draw(pools())
    leaf = st.sampled_from(pool) | st.integers() | st.text(max_size=3)
    return draw(
        st.recursive(
            leaf,
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(st.text(max_size=2), inner, max_size=4)
                | st.tuples(inner, inner)
            ),
            max_leaves=8,
        )
    )


def leaves_of(tree: Any) -> Iterator[Any]:
    """Tensors and arrays, in order, an object as often as it stands there."""
    if isinstance(tree, (torch.Tensor, numpy.ndarray)):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from leaves_of(value)
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            yield from leaves_of(value)


def bytes_of(leaf: Any) -> bytes:
    """The elements' bytes in row-major order."""
    if isinstance(leaf, numpy.ndarray):
        return leaf.tobytes()
    flat = torch.empty(leaf.numel(), dtype=leaf.dtype)  # its own strides, whatever those of the leaf are
    return bytes(flat.copy_(leaf.detach().reshape(-1)).view(torch.uint8).tolist())


def scribble(leaf: Any) -> None:
    """Change every element in place, behind autograd's back."""
    if isinstance(leaf, numpy.ndarray):
        leaf.view(leaf.dtype)[...] = 1 - leaf if leaf.dtype != bool else ~leaf
    else:
        data = leaf.data
        data.copy_(1 - data.clone() if data.dtype is not torch.bool else ~data.clone())


def shape_of(tree: Any) -> Any:
    """The tree with every tensor and array replaced by what it is."""
    if isinstance(tree, torch.Tensor):
        return (type(tree), tree.dtype, tuple(tree.shape), tree.requires_grad)
    if isinstance(tree, numpy.ndarray):
        return (type(tree), tree.dtype, tree.shape, tree.flags.writeable)
    if isinstance(tree, dict):
        return {key: shape_of(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [type(tree), *map(shape_of, tree)]
    return tree
