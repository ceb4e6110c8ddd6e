"""The memory of one tensor among everything that is alive: its regions, and what else lies in them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass

from tensafe.aliases.allocations import Allocation, Piece
from tensafe.aliases.live_map import notes_of
from tensafe.aliases.mappings import Mappings
from tensafe.aliases.model import Alias, Region, Relation
from tensafe.aliases.relation import relation
from tensafe.aliases.steps import natural
from tensafe.aliases.walk import Found
from tensafe.memory import Extent, Part, covered

Names = Callable[[Found], tuple[str, ...]]
MOST_ALIASES = 2_000


@dataclass(eq=False)
class Home:
    """One region of the tensor with the allocation that it lies in."""

    name: str
    own: Piece
    allocation: Allocation

    def place(self, part: Part) -> Extent | None:
        """Where a part lies in this allocation, None when it lies elsewhere."""
        for piece in self.allocation.pieces:
            if piece.part.storage is part.storage:
                return part.extent.moved(piece.extent.offset - piece.part.extent.offset)
        address = self.allocation.address
        if part.address is None or address is None or self.allocation.is_lazy or part.note == "copy-on-write":
            return None
        if part.device != self.allocation.device or not 0 <= part.address - address < self.allocation.nbytes:
            return None
        return part.extent.moved(part.address - address)


def homes_of(value: object, allocations: Iterable[Allocation]) -> list[Home]:
    """The regions of this tensor, in the order of its parts."""
    return [
        Home(piece.part.name, piece, allocation)
        for allocation in allocations
        for piece in allocation.pieces
        if piece.found.value is value
    ]


def regions_of(homes: list[Home], names: Names, mappings: Mappings, is_view: bool) -> tuple[Region, ...]:
    """The regions as plain data, each storage under its own label."""
    labels: dict[int, str] = {}
    regions = []
    for home in homes:
        label = labels.setdefault(id(home.allocation), _label(home, names, is_view, len(labels)))
        extent = home.own.extent
        notes = tuple(notes_of(home.allocation, mappings))
        whole, device = home.allocation.nbytes, home.allocation.device
        reached = covered([extent])
        exact = reached.exact
        regions.append(Region(home.name, extent, reached.nbytes, label, whole, device, notes, exact))
    return tuple(regions)


def _label(home: Home, names: Names, is_view: bool, count: int) -> str:
    """What to call the storage: by the tensor that covers most of it."""
    if not is_view and home.own.extent.nbytes >= home.allocation.nbytes:
        return f"its own storage ({home.name})" if home.name else "its own storage"
    largest = sorted(home.allocation.pieces, key=lambda piece: -piece.extent.nbytes)
    for piece in largest:
        found = names(piece.found) if piece.found.value is not home.own.found.value else ()
        if found and piece.extent.nbytes >= min(home.own.extent.nbytes, home.allocation.nbytes):
            return f"the storage of `{found[0]}`"
    if home.own.extent.nbytes >= home.allocation.nbytes:
        return "its own storage"
    return "a storage without a name" if not count else f"a storage without a name ({count + 1})"


def aliases_in(homes: list[Home], names: Names, base: object, hidden: Container[int]) -> list[Alias]:
    """All other tensors and arrays in these allocations, those that share bytes first.

    Left out are nameless ones that only a graph keeps: `hidden`, by `id`.
    """
    found = []
    for home in homes:
        others = [
            piece
            for piece in home.allocation.pieces
            if piece.found.value is not home.own.found.value
            and (piece.found.paths or id(piece.found.value) not in hidden)
        ]
        for place, piece in enumerate(others):
            how: Relation = "cannot tell"
            if place < MOST_ALIASES:
                how = relation(home.own.extent, piece.extent)
            found.append(_alias(home, piece, how, names(piece.found), piece.found.value is base))
    return sorted(found, key=_nearness)


def _alias(home: Home, piece: Piece, how: Relation, names: tuple[str, ...], is_base: bool) -> Alias:
    part = piece.part
    shown = tuple(f"{name} ({part.name})" for name in names) if part.name else names
    kind = piece.found.kind
    return Alias(shown, kind, how, part.extent.shape, part.dtype, piece.extent, home.name, is_base)


ORDER: tuple[Relation, ...] = (
    "the same tensor",
    "the same bytes",
    "contains it",
    "overlaps it",
    "inside it",
    "cannot tell",
    "no common byte",
)


def _nearness(alias: Alias) -> tuple[int, int, list[tuple[str | int, ...]]]:
    return ORDER.index(alias.relation), -alias.extent.nbytes, [natural(name) for name in alias.names]


def met_by(homes: list[Home], parts: Iterable[Part]) -> Iterator[tuple[Home, Relation]]:
    """How these parts lie to the regions, for those in the same allocation."""
    for part in parts:
        for home in homes:
            placed = home.place(part)
            if placed is not None:
                yield home, relation(home.own.extent, placed)
