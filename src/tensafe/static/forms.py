"""How a tensor lies in its memory, as far as source tells: the order of dimensions, of what it is a part."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tensafe.static.values import Frame

WHOLE, NARROWED, STEPPED = range(3)
EXPANDED = -1  # the place of a dimension that has no memory of its own


class Dim(NamedTuple):
    """One dimension: its place in the order of the memory, what was cut away from it, and its size."""

    place: int
    cut: int = WHOLE
    size: int | None = None


Layout = tuple[Dim, ...]
CONTIGUOUS: Layout = ()  # contiguous, of a rank that is not known
_CHANNELS_LAST = (0, 3, 1, 2)
_CHANNELS_LAST_3D = (0, 4, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Part:
    """Of a larger tensor: which call or index made it, and how much of the whole it surely leaves out."""

    node: ast.AST | None  # None: it came by iterating over the whole
    frame: Frame
    root: tuple[int, ...]  # the storages of the whole
    sure: bool  # the rest is certainly there
    stepped: bool = False
    fixed: bool = False  # at a place that is the same each time: `x[-1]`, `x[:, :k]`
    share: float | None = None  # of the whole, where the sizes are known
    nbytes: int = 0  # of the whole, where the sizes are known


@dataclass(frozen=True, slots=True)
class Form:
    """What is known of a tensor's place in its memory."""

    layout: Layout | None = None
    part: Part | None = None
    made: ast.AST | None = None  # the call that gave the layout its order
    frame: Frame | None = None

    @property
    def carried(self) -> Form | None:
        """What another view of it still has."""
        return Form(None, self.part) if self.part is not None else None


def contiguous(sizes: list[int | None]) -> Layout:
    """The layout of a tensor that was just made with these sizes."""
    return tuple(Dim(place, WHOLE, size) for place, size in enumerate(sizes))


def unknown_sizes(rank: int) -> Layout:
    return tuple(Dim(place) for place in range(rank))


def channels_last(rank: int) -> Layout:
    order = _CHANNELS_LAST if rank == 4 else _CHANNELS_LAST_3D
    return tuple(Dim(place) for place in order)


def permuted(layout: Layout, order: list[int]) -> Layout | None:
    """The dimensions in this order; the order itself tells the rank where that is not known."""
    rank = len(order)
    known = layout or unknown_sizes(rank)
    places = [place + rank if place < 0 else place for place in order]
    if len(known) != rank or sorted(places) != list(range(rank)):
        return None
    return tuple(known[place] for place in places)


def swapped(layout: Layout, one: int, other: int) -> Layout | None:
    """Two dimensions exchanged."""
    rank = len(layout)
    if not all(-rank <= place < rank for place in (one, other)):
        return None
    dims = list(layout)
    dims[one], dims[other] = dims[other], dims[one]
    return tuple(dims)


def unsqueezed(layout: Layout, place: int) -> Layout | None:
    rank = len(layout)
    if not layout or not -rank - 1 <= place <= rank:
        return None
    dims = list(layout)
    dims.insert(place if place >= 0 else place + rank + 1, Dim(0, WHOLE, 1))
    return tuple(dims)


def expanded(layout: Layout, sizes: list[int | None]) -> Layout | None:
    """Dimensions of size one that were given another size lie in no memory of their own."""
    more = len(sizes) - len(layout)
    if not layout or more < 0:
        return None
    dims = [Dim(EXPANDED, WHOLE, size) for size in sizes[:more]]
    for dim, size in zip(layout, sizes[more:], strict=True):
        grown = dim.size == 1 and size not in (1, -1)
        dims.append(Dim(EXPANDED, WHOLE, size) if grown else dim)
    return tuple(dims)


def copied(layout: Layout | None) -> Layout | None:
    """What `clone()` or an operation on each element gives: the same order, without gaps."""
    if not layout or any(dim.place == EXPANDED for dim in layout):
        return layout if layout == CONTIGUOUS else None
    order = sorted(range(len(layout)), key=lambda number: layout[number].place)
    places = {number: place for place, number in enumerate(order)}
    return tuple(
        Dim(places[number], WHOLE, dim.size if dim.cut == WHOLE else None)
        for number, dim in enumerate(layout)
    )


def without_sizes(layout: Layout) -> Layout:
    return tuple(dim._replace(size=None) for dim in layout)


def is_contiguous(layout: Layout) -> bool:
    """Whether the elements lie in their order without gaps."""
    live = _live(layout)
    return all(_merges(one, other) for one, other in itertools.pairwise(live))


def refuses(layout: Layout | None, rank: int) -> bool:
    """Whether no view with `rank` dimensions exists: too few neighbours lie side by side to become one."""
    if not layout:
        return False
    live = _live(layout)
    together = sum(_merges(one, other) for one, other in itertools.pairwise(live))
    return len(live) - rank > together


def _live(layout: Layout) -> list[Dim]:
    """The dimensions that take room; what lay on both sides of one of size one lies side by side."""
    live = [dim for dim in layout if dim.size != 1]
    gone = {dim.place for dim in layout if dim.size == 1}.difference(dim.place for dim in live)
    if not gone:
        return live
    return [dim._replace(place=dim.place - sum(place < dim.place for place in gone)) for dim in live]


def _merges(one: Dim, other: Dim) -> bool:
    if one.place == other.place == EXPANDED:
        return True
    side_by_side = EXPANDED not in (one.place, other.place) and other.place == one.place + 1
    return side_by_side and other.cut == WHOLE and one.cut != STEPPED


def arranged(form: Form | None, layout: Layout | None, node: ast.AST, frame: Frame) -> Form | None:
    """The form of a view with another layout; `node` is to blame for it where it changes the order."""
    if layout is None:
        return form.carried if form is not None else None
    if form is None:
        return Form(layout, None, node, frame)
    return replace(form, layout=layout, made=node, frame=frame)


def joined_form(one: Form | None, other: Form | None) -> Form | None:
    """What is known of either of two tensors: a part on one path is a part that can come."""
    if one == other:
        return one
    part = (one and one.part) or (other and other.part)
    return Form(None, part) if part else None
