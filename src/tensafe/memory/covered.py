"""The union of bytes that several extents of one storage reach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from tensafe.memory.extent import Extent
from tensafe.memory.overlap import meet

MOST_RUNS = 200_000
"""Runs of bytes that one call lists one by one, over all groups of extents that reach into each other."""
MOST_PAIRS = 500

Run = tuple[int, int]
"""The first byte, and one past the last."""


@dataclass(frozen=True, slots=True)
class Covered:
    """What the extents reach together; where `exact` is False, `nbytes` is an upper bound."""

    nbytes: int
    shared_nbytes: int  # bytes that two or more extents reach
    exact: bool
    runs: tuple[Run, ...]  # ascending, joined; finely strided extents over `MOST_RUNS` appear as one run


def covered(extents: Iterable[Extent], most_runs: int = MOST_RUNS) -> Covered:
    """The union of the extents, `n log n` where they are dense: each byte counts once.

    Work is bounded by `most_runs`: beyond it, an answer that cannot be had from whole extents is not `exact`.
    """
    parts = []
    for group in groups(extents):
        part = _cover_group(group, most_runs)
        most_runs -= len(part.runs) if len(part.runs) > 1 else 0
        parts.append(part)
    return Covered(
        sum(part.nbytes for part in parts),
        sum(part.shared_nbytes for part in parts),
        all(part.exact for part in parts),
        tuple(joined(run for part in parts for run in part.runs)),
    )


def groups(extents: Iterable[Extent]) -> Iterator[list[Extent]]:
    """Extents whose ranges from start to stop reach into each other, ascending; empty extents are left
    out.
    """
    group: list[Extent] = []
    stop = 0
    for extent in sorted((e for e in extents if e.numel), key=lambda e: e.start):
        if group and extent.start >= stop:
            yield group
            group = []
        stop = max(stop, extent.stop) if group else extent.stop
        group.append(extent)
    if group:
        yield group


def joined(runs: Iterable[Run]) -> Iterator[Run]:
    """Ascending runs, those that touch made one."""
    begin: int | None = None
    end = 0
    for start, stop in runs:
        if begin is None:
            begin, end = start, stop
        elif start <= end:
            end = max(end, stop)
        else:
            yield begin, end
            begin, end = start, stop
    if begin is not None:
        yield begin, end


def row_count(extent: Extent) -> int:
    """How many runs `runs_of` lists at most."""
    count = 1
    for size, stride in extent.dimensions:
        count *= 1 if stride == extent.itemsize else size
    return count


def runs_of(extent: Extent) -> list[Run]:
    """The runs of bytes of one extent, ascending and joined."""
    length = extent.itemsize
    starts = [extent.start]
    for size, stride in extent.dimensions:
        if stride == extent.itemsize:  # the innermost dimension: its elements touch
            length = size * stride
        else:
            starts = [start + index * stride for start in starts for index in range(size)]
    return list(joined((start, start + length) for start in sorted(starts)))


def _cover_group(group: list[Extent], most_runs: int) -> Covered:
    if len(group) == 1 and group[0].is_dense:
        start, stop = group[0].start, group[0].stop
        return Covered(stop - start, 0, True, ((start, stop),))
    if all(extent.is_dense for extent in group):
        return _sweep([(extent.start, extent.stop) for extent in group])
    if sum(map(row_count, group)) <= most_runs:
        return _sweep([run for extent in group for run in runs_of(extent)])
    return _cover_whole(group)


def _sweep(runs: list[Run]) -> Covered:
    """Exact, by counting how many runs are open at each byte; the runs of one extent do not touch."""
    edges = sorted([(start, 1) for start, _ in runs] + [(stop, -1) for _, stop in runs])
    nbytes = shared = depth = last = 0
    for place, change in edges:
        if depth:
            nbytes += place - last
        if depth > 1:
            shared += place - last
        depth, last = depth + change, place
    return Covered(nbytes, shared, True, tuple(joined(sorted(runs))))


def _cover_whole(group: Sequence[Extent]) -> Covered:
    """From whole extents, where their rows are too many to list."""
    start, stop = min(e.start for e in group), max(e.stop for e in group)
    dense = _sweep([(e.start, e.stop) for e in group if e.is_dense])
    fine = [extent for extent in group if not extent.is_dense]
    counts = [distinct_nbytes(extent) for extent in fine]
    known = [count for count in counts if count is not None]
    apart = len(known) == len(fine) and _are_apart(fine)
    if apart and dense.nbytes == stop - start and not dense.shared_nbytes:
        return Covered(dense.nbytes, sum(known), True, dense.runs)
    if apart and not dense.nbytes:
        return Covered(sum(known), 0, True, ((start, stop),))
    above = min(stop - start, dense.nbytes + sum(min(e.nbytes, e.stop - e.start) for e in fine))
    return Covered(above, 0 if apart and not dense.nbytes else above, False, ((start, stop),))


def _are_apart(extents: Sequence[Extent]) -> bool:
    """Whether no two reach the same byte, as far as a bounded look tells."""
    if len(extents) * (len(extents) - 1) // 2 > MOST_PAIRS:
        return False
    return all(meet(first, second) is None for first, second in combinations(extents, 2))


def distinct_nbytes(extent: Extent) -> int | None:
    """Bytes that one extent reaches, None where its elements overlap in a way that only listing tells."""
    inner = count = extent.itemsize
    for size, stride in reversed(extent.dimensions):
        if stride < inner:
            return None
        inner += stride * (size - 1)
        count *= size
    return count if extent.numel else 0
