"""The bytes of a tensor in the order of its indices, read in bounded parts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tensafe.checkpoints.content import Content
from tensafe.checkpoints.rewriting.gather import READ_AT_ONCE, picked
from tensafe.memory.extent import Extent

Dimensions = list[tuple[int, int]]
"""Size and stride in bytes, the outermost first."""


def element_bytes(content: Content, extent: Extent, order: list[int] | None = None) -> Iterator[bytes]:
    """Every element once, those of stride 0 not again; `order` is that of the dimensions, outermost first.

    Two extents of one shape give equal bytes for equal elements when they are read in one order.
    """
    if not extent.numel:
        return
    dimensions = [
        (extent.shape[index], extent.strides[index])
        for index in (order if order is not None else range(len(extent.shape)))
        if extent.shape[index] > 1
    ]
    yield from _read(content, extent.offset, extent.itemsize, _joined(dimensions, extent.itemsize))


def reading_order(extent: Extent) -> list[int]:
    """The dimensions by their strides, so that reading goes forward."""
    return sorted(range(len(extent.shape)), key=lambda index: -extent.strides[index])


def _joined(dimensions: Dimensions, itemsize: int) -> Dimensions:
    joined: Dimensions = []
    for size, stride in dimensions:
        if stride == 0:
            continue
        if joined and joined[-1][1] == size * stride:
            joined[-1] = joined[-1][0] * size, stride
        else:
            joined.append((size, stride))
    return joined


def _read(content: Content, offset: int, itemsize: int, dimensions: Dimensions) -> Iterator[bytes]:
    """Whole rows where elements touch, then the row or the longest dimension at once."""
    length = itemsize
    if dimensions and dimensions[-1][1] == itemsize:
        length = itemsize * dimensions[-1][0]
        dimensions = dimensions[:-1]
    size, stride = dimensions[-1] if dimensions else (1, length)
    for indices in product(*(range(size) for size, _ in dimensions[:-1])):
        steps = (index * step for index, (_, step) in zip(indices, dimensions[:-1], strict=True))
        yield from _row(content, offset + sum(steps), length, size, stride)


def _row(content: Content, start: int, length: int, size: int, stride: int) -> Iterator[bytes]:
    if length > READ_AT_ONCE or stride > READ_AT_ONCE:
        for index in range(size):
            for place in range(0, length, READ_AT_ONCE):
                yield content.read_at(start + index * stride + place, min(READ_AT_ONCE, length - place))
        return
    at_once = max(1, READ_AT_ONCE // stride)
    for first in range(0, size, at_once):
        count = min(at_once, size - first)
        data = content.read_at(start + first * stride, (count - 1) * stride + length)
        yield picked(data, length, stride, count)
