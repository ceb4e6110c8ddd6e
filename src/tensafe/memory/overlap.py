"""Whether two extents of one storage reach a common byte, exactly, and which."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tensafe.memory.extent import Extent
from tensafe.memory.solver import OutOfStepsError, Term, solve, solve_few

STEPS = 200_000
"""How many values the search tries before it says that it cannot tell: a fraction of a second."""


class Shared(NamedTuple):
    """A byte that two extents reach, and the element of each that holds it."""

    byte: int  # from the start of the storage
    first: tuple[int, ...]  # index of the element of the first extent
    second: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Undecided:
    """Neither yes nor no: `reason` says why in one sentence. Truthy, as it must be taken for a possible
    yes.
    """

    reason: str

    def __str__(self) -> str:
        return f"cannot tell: {self.reason}"


def meet(a: Extent, b: Extent, steps: int = STEPS) -> Shared | Undecided | None:
    """A byte that both reach, None when there is certainly none.

    >>> meet(Extent(0, (5,), (8,), 4), Extent(4, (5,), (8,), 4)) is None  # x[::2], x[1::2]
    True
    """
    a_start, a_stop = _range(a)
    b_start, b_stop = _range(b)
    if a_stop <= b_start or b_stop <= a_start:
        return None
    found = _at_a_start(a, b, a_start, b_start)
    if found is not None:
        return found
    try:
        return _search(a, b, steps)
    except OutOfStepsError:
        return Undecided(f"not within {steps} steps")


def _range(extent: Extent) -> tuple[int, int]:
    """`start` and `stop` in one pass; an empty extent starts behind everything, so that nothing meets it."""
    start = stop = extent.offset
    for size, stride in zip(extent.shape, extent.strides, strict=True):
        if size > 1:
            if stride > 0:
                stop += stride * (size - 1)
            else:
                start += stride * (size - 1)
        elif not size:
            return sys.maxsize, sys.maxsize
    return start, stop + extent.itemsize


def do_meet(a: Extent, b: Extent) -> bool | None:
    """Whether two extents that count in whole elements (itemsize 1) meet, where that is decided at once.

    The equation of `_search` for strides that are not negative and of at most two kinds, as a matrix has.
    None says nothing.
    """
    merged: dict[int, int] = {}
    a_stop, b_stop = a.offset, b.offset
    for size, stride in zip(a.shape, a.strides, strict=True):
        if size > 1:
            if stride > 0:
                merged[stride] = merged.get(stride, 0) + size - 1
                a_stop += stride * (size - 1)
            elif stride:
                return None
        elif not size:
            return False
    for size, stride in zip(b.shape, b.strides, strict=True):
        if size > 1:
            if stride > 0:
                merged[stride] = merged.get(stride, 0) + size - 1
                b_stop += stride * (size - 1)
            elif stride:
                return None
        elif not size:
            return False
    if a_stop < b.offset or b_stop < a.offset:
        return False
    return solve_few(merged, b_stop - a.offset) is not None if len(merged) < 3 else None


def _at_a_start(a: Extent, b: Extent, a_start: int, b_start: int) -> Shared | None:
    """The first byte of one where the other has it, too: the usual answer, found without a search."""
    if a_start > b_start:
        index = _digits(b, a_start)
        return None if index is None or a_start != a.offset else Shared(a_start, (0,) * len(a.shape), index)
    index = _digits(a, b_start)
    return None if index is None or b_start != b.offset else Shared(b_start, index, (0,) * len(b.shape))


def _digits(extent: Extent, byte: int) -> tuple[int, ...] | None:
    """The index of an element that holds a byte, if taking each axis as far as it goes leads there."""
    rest = byte - extent.offset
    if rest < 0:
        return None
    index = []
    for size, stride in zip(extent.shape, extent.strides, strict=True):
        if stride <= 0 or size < 2:
            index.append(0)
            continue
        digit = rest // stride
        if digit >= size:
            digit = size - 1
        index.append(digit)
        rest -= digit * stride
    return tuple(index) if rest < extent.itemsize else None


def _terms(extent: Extent) -> list[Term]:
    """A term for each axis that moves."""
    return [
        (abs(stride), size - 1)
        for size, stride in zip(extent.shape, extent.strides, strict=True)
        if size > 1 and stride
    ]


def meet_itself(extent: Extent, steps: int = STEPS) -> Shared | Undecided | None:
    """Two different elements of one extent that hold a common byte, None when each has its own."""
    inner = extent.itemsize
    if extent.numel < 2 or extent.is_contiguous:
        return None
    moving = [(size, abs(stride), axis) for axis, (size, stride) in _axes(extent) if size > 1]
    moving.sort(key=lambda dimension: dimension[1])
    for _, stride, axis in moving:
        if stride == 0:
            second = tuple(int(place == axis) for place in range(len(extent.shape)))
            return Shared(extent.offset, (0,) * len(second), second)
    for size, stride, _ in moving:
        if stride < inner:
            break
        inner += stride * (size - 1)
    else:
        return None
    try:
        return _search_itself(extent, moving, steps)
    except OutOfStepsError:
        return Undecided(f"not within {steps} steps")


def _search(a: Extent, b: Extent, steps: int) -> Shared | None:
    """Solve `a.start + a's steps + byte == b.start + b's steps + byte`, b's counted from the far end."""
    a_terms, b_terms = _terms(a), _terms(b)
    a_start = a.start
    target = b.start - a_start + sum(coefficient * most for coefficient, most in b_terms)
    size = a.itemsize
    terms = a_terms + b_terms
    whole = size == b.itemsize and (size == 1 or not (target % size or any(c % size for c, _ in terms)))
    if whole:  # elements meet as a whole, or not at all
        found = solve(terms, target, steps)
    else:
        found = solve([*terms, (1, size - 1), (1, b.itemsize - 1)], target + b.itemsize - 1, steps)
    if found is None:
        return None
    count = len(a_terms)
    byte = a_start + (0 if whole else found[-2])
    for (coefficient, _), value in zip(a_terms, found, strict=False):
        byte += coefficient * value
    b_values = [most - value for (_, most), value in zip(b_terms, found[count:], strict=False)]
    return Shared(byte, _index(a, found), _index(b, b_values))


def _search_itself(extent: Extent, moving: list[tuple[int, int, int]], steps: int) -> Shared | None:
    """Solve `|sum(stride * difference)| < itemsize` for differences that are not all zero.

    One axis after the other is the first whose difference is not zero; that difference may be taken as
    positive.
    """
    reach = extent.itemsize - 1
    for place, (size, stride, axis) in enumerate(moving):
        others = moving[place + 1 :]
        back = sum((n - 1) * s for n, s, _ in others)
        terms: list[Term] = [(stride, size - 2), *((s, 2 * (n - 1)) for n, s, _ in others), (1, 2 * reach)]
        found = solve(terms, back + reach - stride, steps)
        if found is None:
            continue
        differences = [0] * len(extent.shape)
        differences[axis] = found[0] + 1
        for (n, _, other), value in zip(others, found[1:], strict=False):
            differences[other] = value - (n - 1)
        return _apart(extent, differences)
    return None


def _apart(extent: Extent, differences: list[int]) -> Shared:
    """Two indices that differ by this much, counted along ascending addresses, and a byte that both hold."""
    first, second = [], []
    for difference, (size, stride) in zip(differences, (axis for _, axis in _axes(extent)), strict=True):
        low, high = max(0, -difference), max(0, difference)
        first.append(low if stride >= 0 else size - 1 - low)
        second.append(high if stride >= 0 else size - 1 - high)
    byte = max(_byte_of(extent, first), _byte_of(extent, second))
    return Shared(byte, tuple(first), tuple(second))


def _byte_of(extent: Extent, index: list[int]) -> int:
    return extent.offset + sum(i * stride for i, stride in zip(index, extent.strides, strict=True))


def _axes(extent: Extent) -> list[tuple[int, tuple[int, int]]]:
    return list(enumerate(zip(extent.shape, extent.strides, strict=True)))


def _index(extent: Extent, values: Sequence[int]) -> tuple[int, ...]:
    """Steps along ascending addresses, one for each axis that moves, as an index of the tensor."""
    index = []
    place = 0
    for size, stride in zip(extent.shape, extent.strides, strict=True):
        if size < 2 or not stride:
            index.append(0)
            continue
        value = values[place]
        index.append(value if stride > 0 else size - 1 - value)
        place += 1
    return tuple(index)
