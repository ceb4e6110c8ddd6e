"""Where the ink goes: a storage cut into dead, used and shared bytes, a tensor into the runs it reaches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from tensafe.memory.covered import Run, row_count, runs_of
from tensafe.memory.extent import Extent
from tensafe.memory.map import Storage

MOST_MARKS = 48
"""A strided tensor of at most so many runs is drawn run by run, one of more as a hatched range."""
MOST_ROWS = 20_000
"""So many runs of one storage are looked at one by one."""
RESOLUTION = 1000
"""What is narrower than this part of its storage is drawn together with its neighbours."""

DEAD, USED, SHARED, MIXED = "dead", "used", "shared", "mixed"


@dataclass(frozen=True, slots=True)
class Marks:
    """The runs to draw for one tensor, in bytes of its storage; `fine`: a range reached here and there."""

    runs: tuple[Run, ...]
    fine: bool


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a storage: `dead`, `used` by one tensor, `shared` by more, or `mixed` too finely."""

    start: int
    stop: int
    kind: str


def marks_of(extent: Extent, storage_nbytes: int) -> Marks:
    """What to draw for a tensor, cut off at the end of its storage."""
    if not extent.numel:
        return Marks((), False)
    fine = not extent.is_dense and row_count(extent) > MOST_MARKS
    runs = [(extent.start, extent.stop)] if fine or extent.is_dense else runs_of(extent)
    return Marks(tuple(_inside(runs, storage_nbytes)), fine)


def segments_of(storage: Storage) -> list[Segment]:
    """The whole storage from byte 0 on, neighbours of a kind joined; about 2 * RESOLUTION at most."""
    if not storage.nbytes:
        return []
    extents = [tensor.extent for tensor in storage.tensors if tensor.extent.numel]
    if sum(1 if extent.is_dense else row_count(extent) for extent in extents) <= MOST_ROWS:
        runs = [_inside(_all_runs(extent), storage.nbytes) for extent in extents]
        pieces = _sweep([run for one in runs for run in one], [], storage.nbytes)
    else:
        marks = [marks_of(extent, storage.nbytes) for extent in extents]
        solid = [run for one in marks if not one.fine for run in one.runs]
        pieces = _sweep(solid, [run for one in marks if one.fine for run in one.runs], storage.nbytes)
    return _coarse(pieces, storage.nbytes)


def is_filled(storage: Storage) -> bool:
    """Whether a single tensor takes every byte: one line says all."""
    return len(storage.tensors) == 1 and all(piece.kind == USED for piece in segments_of(storage))


def _all_runs(extent: Extent) -> Sequence[Run]:
    return [(extent.start, extent.stop)] if extent.is_dense else runs_of(extent)


def _inside(runs: Iterable[Run], nbytes: int) -> list[Run]:
    return [(max(0, start), min(stop, nbytes)) for start, stop in runs if start < nbytes and stop > 0]


def _sweep(solid: Iterable[Run], fine: Iterable[Run], nbytes: int) -> list[Segment]:
    """By counting, at each edge, how many runs of either sort are open."""
    edges = [(place, change, 0) for start, stop in solid for place, change in ((start, 1), (stop, -1))]
    edges += [(place, 0, change) for start, stop in fine for place, change in ((start, 1), (stop, -1))]
    edges.append((nbytes, 0, 0))
    pieces: list[Segment] = []
    depth = fine_depth = last = 0
    for place, change, fine_change in sorted(edges):
        if place > last:
            kind = MIXED if fine_depth else (DEAD, USED, SHARED)[min(depth, 2)]
            pieces.append(Segment(last, place, kind))
        depth, fine_depth, last = depth + change, fine_depth + fine_change, place
    return _joined(pieces)


def _joined(pieces: Iterable[Segment]) -> list[Segment]:
    joined: list[Segment] = []
    for kind, group in groupby(pieces, key=lambda piece: piece.kind):
        members = list(group)
        joined.append(Segment(members[0].start, members[-1].stop, kind))
    return joined


def _coarse(pieces: Sequence[Segment], nbytes: int) -> list[Segment]:
    """Neighbours too narrow to draw become one mixed stretch."""
    if len(pieces) <= RESOLUTION:
        return list(pieces)
    coarse: list[Segment] = []
    for narrow, group in groupby(pieces, key=lambda piece: (piece.stop - piece.start) * RESOLUTION < nbytes):
        members = list(group)
        if narrow and len(members) > 1:
            coarse.append(Segment(members[0].start, members[-1].stop, MIXED))
        else:
            coarse += members
    return _joined(coarse)
