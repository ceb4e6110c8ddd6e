"""How the bytes of two extents of one storage lie to each other."""

from __future__ import annotations

from tensafe.aliases.model import Relation
from tensafe.memory import Extent, Undecided, covered, meet

MOST_RUNS = 20_000


def relation(own: Extent, other: Extent) -> Relation:
    """What `other` is to `own`: exact, except where bounded work says "cannot tell"."""
    if own == other:
        return "the same bytes" if own.numel else "no common byte"
    if own.numel and other.numel and own.is_dense and other.is_dense:
        return _of_ranges(own.start, own.stop, other.start, other.stop)
    found = meet(own, other)
    if found is None:
        return "no common byte"
    if isinstance(found, Undecided):
        return "cannot tell"
    return _of_unions(own, other)


def _of_ranges(start: int, stop: int, other_start: int, other_stop: int) -> Relation:
    if stop <= other_start or other_stop <= start:
        return "no common byte"
    if (start, stop) == (other_start, other_stop):
        return "the same bytes"
    if other_start <= start and stop <= other_stop:
        return "contains it"
    return "inside it" if start <= other_start and other_stop <= stop else "overlaps it"


def _of_unions(own: Extent, other: Extent) -> Relation:
    """Two sets of bytes that meet: the size of their union says which holds the other."""
    both = covered([own, other], MOST_RUNS)
    first, second = covered([own], MOST_RUNS), covered([other], MOST_RUNS)
    if not (both.exact and first.exact and second.exact):
        return "overlaps it"
    if both.nbytes == first.nbytes == second.nbytes:
        return "the same bytes"
    if both.nbytes == second.nbytes:
        return "contains it"
    return "inside it" if both.nbytes == first.nbytes else "overlaps it"
