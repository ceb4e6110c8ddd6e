"""The oracle: the bytes of an extent as a set, one element after the other; and extents to judge by it."""

from __future__ import annotations

import itertools
import random

from hypothesis import strategies as st

from tensafe.memory import Extent

ITEMSIZES = (1, 2, 4, 8, 16)


def elements(extent: Extent) -> dict[tuple[int, ...], range]:
    """The bytes of every element, by index."""
    found = {}
    for index in itertools.product(*map(range, extent.shape)):
        first = extent.offset + sum(i * stride for i, stride in zip(index, extent.strides, strict=True))
        found[index] = range(first, first + extent.itemsize)
    return found


def byte_set(extent: Extent) -> set[int]:
    return {byte for element in elements(extent).values() for byte in element}


def is_self_overlapping(extent: Extent) -> bool:
    return len(byte_set(extent)) < extent.nbytes


@st.composite
def extents(draw: st.DrawFn, signed: bool = True, itemsizes: tuple[int, ...] = ITEMSIZES) -> Extent:
    """Small extents of any kind: empty, 0-d, zero and negative strides, strides that are no multiple of the
    item.
    """
    itemsize = draw(st.sampled_from(itemsizes))
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    in_items = draw(st.booleans())
    low = -12 if signed else 0
    strides = tuple(draw(st.integers(low, 12)) * (itemsize if in_items else 1) for _ in shape)
    return Extent(draw(st.integers(0, 60)) * (itemsize if in_items else 1), shape, strides, itemsize)


def random_view(random: random.Random, count: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Offset, shape and strides, in elements, of a view that fits into `count` elements; strides 0 and
    over.
    """
    shape, strides, reach = [], [], 0
    for _ in range(random.randrange(4)):
        size = random.choice((0, 1, 2, 2, 3, 4, 5)) if random.random() < 0.9 else random.randrange(9)
        most = (count - 1 - reach) // max(1, size - 1)
        stride = random.choice((0, 1, random.randint(0, max(0, most)))) if most >= 1 else 0
        shape.append(size)
        strides.append(stride)
        reach += max(0, size - 1) * stride
    return random.randint(0, count - 1 - reach), tuple(shape), tuple(strides)
