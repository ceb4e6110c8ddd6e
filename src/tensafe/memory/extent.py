"""Where the elements of one strided tensor or array lie."""

from __future__ import annotations

import math
from typing import NamedTuple


class Extent(NamedTuple):
    """The bytes of a strided tensor: `itemsize` bytes at `offset + sum(index * strides)`, for every index.

    All in bytes, counted from the start of the storage. Strides may be zero or negative. (A tuple, as
    thousands of pairs are compared.)

    Attributes:
        offset: byte of the element at index 0, …, 0.
        shape: sizes, in elements.
        strides: steps, in bytes.
        itemsize: bytes of one element.
    """

    offset: int  # of the element at index 0, ..., 0
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def numel(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, as if each had its own."""
        return self.numel * self.itemsize

    @property
    def start(self) -> int:
        """The lowest byte of any element; `offset` when there is none."""
        if not self.numel:
            return self.offset
        return self.offset + sum(
            stride * (size - 1) for size, stride in zip(self.shape, self.strides, strict=True) if stride < 0
        )

    @property
    def stop(self) -> int:
        """One past the highest byte of any element; `offset` when there is none."""
        if not self.numel:
            return self.offset
        span = sum(
            stride * (size - 1) for size, stride in zip(self.shape, self.strides, strict=True) if stride > 0
        )
        return self.offset + span + self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie one after the other in row-major order (C order)."""
        expected = self.itemsize
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True

    @property
    def dimensions(self) -> tuple[tuple[int, int], ...]:
        """`(size, stride)` of the dimensions that move, strides positive and descending, neighbours joined.

        Counted from `start`; together they reach the same bytes. Dimensions of size 1 and of stride 0 are
        left out, as they reach no further byte, and those of equal strides are one.
        """
        sizes: dict[int, int] = {}
        for size, stride in zip(self.shape, self.strides, strict=True):
            if size != 1 and stride:
                sizes[abs(stride)] = sizes.get(abs(stride), 1) + size - 1
        joined: list[tuple[int, int]] = []
        for stride in sorted(sizes, reverse=True):
            size = sizes[stride]
            if joined and joined[-1][1] == size * stride:
                joined[-1] = (joined[-1][0] * size, stride)
            else:
                joined.append((size, stride))
        return tuple(joined)

    @property
    def is_dense(self) -> bool:
        """Whether it reaches every byte from `start` to `stop`, and each by one index alone."""
        if not self.numel:
            return True
        repeats = any(size > 1 and not stride for size, stride in zip(self.shape, self.strides, strict=True))
        return not repeats and self.is_nested and self.stop - self.start == self.nbytes

    @property
    def is_nested(self) -> bool:
        """Whether each stride steps over all that the smaller ones reach: no two elements overlap then.

        Elements at stride 0 are one; some extents that are not nested have no overlap either.
        """
        inner = self.itemsize
        for stride, size in sorted(zip(map(abs, self.strides), self.shape, strict=True)):
            if size == 1 or not stride:
                continue
            if stride < inner:
                return False
            inner += stride * (size - 1)
        return True

    def moved(self, distance: int) -> Extent:
        """The same extent, `distance` bytes further on."""
        return Extent(self.offset + distance, self.shape, self.strides, self.itemsize)

    def scaled(self, unit: int) -> Extent:
        """The same extent with every number `unit` times as large."""
        strides = tuple([stride * unit for stride in self.strides])
        return Extent(self.offset * unit, tuple(self.shape), strides, self.itemsize * unit)
