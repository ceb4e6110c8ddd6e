"""The plan of a storage without its dead bytes: what to copy, and where each extent then lies."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

from tensafe.memory.covered import MOST_PAIRS, MOST_RUNS, Run, groups, joined, row_count, runs_of
from tensafe.memory.extent import Extent
from tensafe.memory.overlap import meet


class Rows(NamedTuple):
    """`repeats` runs of `length` bytes, each `stride` after the one before, written one after the other at
    `place`.
    """

    start: int  # in the old storage
    length: int
    repeats: int
    stride: int
    place: int  # in the new one

    @property
    def nbytes(self) -> int:
        return self.length * self.repeats


class Packing(NamedTuple):
    """`rows` of the old storage make the new one of `nbytes`; bytes that no row writes are padding.

    `extents` lie in the new storage, in the order they were given, with the shapes they had; two that shared
    bytes share the same ones.
    """

    nbytes: int
    extents: tuple[Extent, ...]
    rows: tuple[Rows, ...]  # in the order of their places

    @property
    def kept_nbytes(self) -> int:
        return sum(rows.nbytes for rows in self.rows)


def pack(extents: Sequence[Extent], most_runs: int = MOST_RUNS) -> Packing:
    """Plan a storage that holds the bytes these extents reach and, where strides allow it, no other.

    An extent that shares no byte with another becomes dense, in the order of its strides. Extents that do
    share keep their bytes in order, without the gaps if all of them stay strided so, which is checked at
    every row; else the group is moved as it lies. Strides must not be negative, as those of tensors are not.
    """
    placed: dict[Extent, Extent] = {}
    rows: list[Rows] = []
    end = 0
    for group in groups(dict.fromkeys(extents)):
        plan = _place_group(group, end, most_runs)
        placed.update(plan.extents)
        rows += plan.rows
        end = rows[-1].place + rows[-1].nbytes
    found = tuple(placed.get(extent) or extent._replace(offset=0) for extent in extents)
    return Packing(end, found, tuple(rows))


class _Placed(NamedTuple):
    extents: dict[Extent, Extent]
    rows: list[Rows]


def _place_group(group: list[Extent], end: int, most_runs: int) -> _Placed:
    """Extents whose ranges reach into each other, one component after the other, unless that takes more
    bytes.
    """
    plan = _Placed({}, [])
    place = end
    for component in _components(group):
        own = _place(component, place, most_runs)
        plan.extents.update(own.extents)
        plan.rows.extend(own.rows)
        place = own.rows[-1].place + own.rows[-1].nbytes
    moved = _moved(group, end)
    return plan if place <= moved.rows[0].place + moved.rows[0].nbytes else moved


def _components(group: list[Extent]) -> list[list[Extent]]:
    """Those that share bytes together; all of them, where too many pairs would have to be asked."""
    if len(group) * (len(group) - 1) // 2 > MOST_PAIRS:
        return [group]
    component = {extent: [extent] for extent in group}
    for a, b in combinations(group, 2):
        if component[a] is not component[b] and meet(a, b) is not None:
            component[a] += component[b]
            component.update(dict.fromkeys(component[b], component[a]))
    return list({id(members): members for members in component.values()}.values())


def _place(component: list[Extent], end: int, most_runs: int) -> _Placed:
    grain = max(extent.itemsize for extent in component)
    if len(component) == 1 and component[0].is_nested:
        return _place_alone(component[0], end + -end % grain)
    start = min(extent.start for extent in component)
    return _squeeze(component, end + (start - end) % grain, most_runs) or _moved(component, end)


def _moved(extents: list[Extent], end: int) -> _Placed:
    """All of them as they lie, the first at the end of what is placed already."""
    grain = max(extent.itemsize for extent in extents)
    start, stop = min(extent.start for extent in extents), max(extent.stop for extent in extents)
    base = end + (start - end) % grain
    moved = {extent: extent.moved(base - start) for extent in extents}
    return _Placed(moved, [Rows(start, stop - start, 1, stop - start, base)])


def _place_alone(extent: Extent, base: int) -> _Placed:
    """One extent, dense, its axes in the order of their strides."""
    strides = list(extent.strides)
    inner = extent.itemsize
    for axis in sorted(range(len(strides)), key=lambda axis: (extent.strides[axis], -axis)):
        if extent.shape[axis] == 1:
            strides[axis] = inner
        elif strides[axis]:
            strides[axis] = inner
            inner *= extent.shape[axis]
    return _Placed(
        {extent: Extent(base, extent.shape, tuple(strides), extent.itemsize)}, list(_rows(extent, base))
    )


def _rows(extent: Extent, place: int) -> Iterator[Rows]:
    """The rows of a nested extent, ascending."""
    *outer, (count, stride) = [(1, extent.itemsize), *extent.dimensions]
    length = extent.itemsize
    if stride == length and len(outer) > 0:
        length *= count
        *outer, (count, stride) = outer
    for steps in product(*(range(0, size * step, step) for size, step in outer if size > 1)):
        yield Rows(extent.start + sum(steps), length, count, stride, place)
        place += length * count


def _squeeze(component: Sequence[Extent], base: int, most_runs: int) -> _Placed | None:
    """The extents without the gaps between their runs, None when one of them would not be strided any
    more.
    """
    if sum(map(row_count, component)) > most_runs:
        return None
    runs = list(joined(sorted(run for extent in component for run in runs_of(extent))))
    ranks = _Ranks(runs, base)
    placed = {}
    for extent in component:
        new = _restride(extent, ranks)
        if new is None:
            return None
        placed[extent] = new
    return _Placed(placed, list(_folded(runs, base)))


def _folded(runs: Sequence[Run], place: int) -> Iterator[Rows]:
    """Runs of one length at one distance as rows."""
    rows: Rows | None = None
    for start, stop in runs:
        length = stop - start
        if rows is not None and length == rows.length:
            step = start - rows.start - rows.stride * (rows.repeats - 1)
            if rows.repeats == 1 or step == rows.stride:
                rows = rows._replace(repeats=rows.repeats + 1, stride=step)
                continue
        if rows is not None:
            yield rows
            place += rows.nbytes
        rows = Rows(start, length, 1, length, place)
    if rows is not None:
        yield rows


class _Ranks:
    """Where each byte of the old storage goes."""

    def __init__(self, runs: list[Run], base: int) -> None:
        self._starts = [start for start, _ in runs]
        self._places = []
        for start, stop in runs:
            self._places.append(base)
            base += stop - start

    def of(self, byte: int) -> int:
        run = bisect_right(self._starts, byte) - 1
        return self._places[run] + byte - self._starts[run]


def _restride(extent: Extent, ranks: _Ranks) -> Extent | None:
    """The extent in the new storage, None when equal steps in the old one are unequal in it."""
    first = ranks.of(extent.offset)
    strides = tuple(
        ranks.of(extent.offset + stride) - first if size > 1 else stride
        for size, stride in zip(extent.shape, extent.strides, strict=True)
    )
    new = Extent(first, extent.shape, strides, extent.itemsize)
    return new if _agrees(extent, new, ranks) else None


def _agrees(old: Extent, new: Extent, ranks: _Ranks) -> bool:
    """Whether every element of the old extent is found where the new one says, in whole items as before."""
    size = old.itemsize
    axes = [
        (n, before, after)
        for n, before, after in zip(old.shape, old.strides, new.strides, strict=True)
        if n > 1 and not before == after == size  # elements that touch move together
    ]
    whole = all(before % size == 0 for _, before, _ in axes)
    if whole and any(after % size for _, _, after in axes):
        return False
    places = [(old.offset, new.offset)]
    for n, before, after in axes:
        places = [(a + before * i, b + after * i) for a, b in places for i in range(n)]
    return all(ranks.of(a) == b for a, b in places)
