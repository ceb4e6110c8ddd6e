"""Small views that keep large storages alive: looked for among all live tensors at a few moments.

A storage counts when everything that reaches its elements is known and is small. The base of a view is alive
through the view alone, unless Python or autograd holds it, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import NamedTuple

import torch

from tensafe.facts import Call, Certainty, Kind, Memory, Moment, Site, Value
from tensafe.memory import Extent, covered
from tensafe.runtime import modes
from tensafe.runtime.places.holders import Holder, holders_of, puts
from tensafe.runtime.places.view_sources import view_site
from tensafe.runtime.storages.ledger import LedgerHistory, clock, ledger_of_storage
from tensafe.runtime.storages.pictures import Drawn, memory_of
from tensafe.runtime.watcher import Context
from tensafe.runtime.writes.discarded import _uses

LARGE = 256 << 10  # bytes of a storage that is looked at
WORTH_A_NOTICE = 1 << 20  # dead bytes kept by one line
WORTH_A_WARNING = 64 << 20
MOST_REACHED = 10  # percent of the storage
MOST_SUSPECTS = 8


class Pin(NamedTuple):
    """A view over a storage that nothing else needs, and how many bytes of it nobody reaches."""

    view: torch.Tensor
    reached: int
    dead: int


@dataclass(slots=True)
class Keeper:
    """One line that keeps such views."""

    site: Site
    kept: Site
    looks: int = 0
    at_end: bool = False
    views: int = 0
    reached: int = 0
    dead: int = 0
    memory: tuple[Memory, ...] = ()  # of one of them


Storages = list[tuple[torch.UntypedStorage, list[torch.Tensor]]]


class Pinned:
    """Looks at large storages; `Looking` decides when."""

    def __init__(self, context: Context) -> None:
        self._ask = context.ask
        self._keepers: dict[Site, Keeper] = {}
        self._extra_uses, self._extra_owners, self._references = _counts_of_an_unheld_base()

    def begin(self, tensors: list[torch.Tensor]) -> None:
        """What is there when watching begins is not the doing of what comes, and may be garbage."""
        for storage in _large(tensors).values():
            ledger_of_storage(storage[0]).older = True

    def finish(self) -> None:
        """Report what was kept from one look to another, or to the end."""
        for keeper in self._keepers.values():
            if keeper.dead >= WORTH_A_NOTICE and (keeper.looks > 1 or keeper.at_end):
                self._report(keeper)

    def _report(self, keeper: Keeper) -> None:
        viewed = Moment(Kind.VIEWED, "", keeper.site, 0)
        kept = Moment(Kind.KEPT, "", keeper.kept, 1)
        certainty = Certainty.DID if keeper.dead >= WORTH_A_WARNING else Certainty.OFTEN_MEANT
        roles = {"view": Value(frozenset(), (viewed, kept))}
        note = f"{keeper.views} views of {keeper.reached} bytes keep {keeper.dead}"
        call = Call(Kind.PINNED, "", keeper.site, next(clock), roles, certainty, note, keeper.memory)
        self._ask(call, LedgerHistory({}))

    def storages(self, tensors: list[torch.Tensor]) -> Storages:
        """The large storages that small tensors look into, with all tensors over each."""
        return [
            (storage, over)
            for storage, over in _large(tensors).values()
            if _is_suspect(storage, over) and not ledger_of_storage(storage).older
        ]

    def pins(self, storages: Storages) -> list[Pin]:
        """The views that keep one of these alive for nothing."""
        return [pin for storage, tensors in storages for pin in self._pin(storage, tensors)]

    def look(self, pins: list[Pin], frames: Sequence[FrameType], over: bool) -> None:
        """Find the lines that keep these views."""
        found: dict[Site, Keeper] = {}
        for pin in pins[:MOST_SUSPECTS]:
            sites = _keeping(pin.view, frames)
            if sites is not None:
                keeper = found.setdefault(sites[0], Keeper(*sites))
                keeper.views += 1
                keeper.memory = keeper.memory or memory_of(Drawn("kept", pin.view))
                keeper.reached += pin.reached
                keeper.dead += pin.dead
        for site, keeper in found.items():
            known = self._keepers.setdefault(site, keeper)
            known.looks += 1
            known.at_end = over
            if keeper.dead > known.dead:
                known.views, known.reached, known.dead = keeper.views, keeper.reached, keeper.dead
                known.memory = keeper.memory

    def _pin(self, storage: torch.UntypedStorage, tensors: list[torch.Tensor]) -> Iterator[Pin]:
        if torch._C._storage_Use_Count(storage._cdata) > len(tensors) + self._extra_owners:
            return  # a tensor that Python does not know reaches we do not know where
        bases = [tensor for tensor in tensors if tensor._base is None and _views_of(tensor, tensors)]
        if any(_uses(base) > len(_views_of(base, tensors)) + self._extra_uses for base in bases):
            return
        if any(references > self._references for references in _references(bases)):
            return
        views = [tensor for tensor in tensors if not any(tensor is base for base in bases)]
        reached = covered([_extent(view) for view in views]).nbytes
        if views and reached * 100 <= MOST_REACHED * storage.nbytes():
            yield Pin(views[0], reached, storage.nbytes() - reached)


def _large(tensors: list[torch.Tensor]) -> dict[int, tuple[torch.UntypedStorage, list[torch.Tensor]]]:
    """The large storages of these tensors, each with all tensors over it."""
    storages: dict[int, tuple[torch.UntypedStorage, list[torch.Tensor]]] = {}
    if not modes.asked():
        for tensor in tensors:
            storage = _storage(tensor)
            if storage is not None and storage.nbytes() >= LARGE:
                storages.setdefault(id(storage), (storage, []))[1].append(tensor)
    return storages


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    try:
        if tensor.layout is not torch.strided or tensor.device.type == "meta" or tensor.is_nested:
            return None
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


def _is_suspect(storage: torch.UntypedStorage, tensors: list[torch.Tensor]) -> bool:
    """Whether all but the bases of views reach a small part; the exact look comes later."""
    reached = sum(tensor.nbytes for tensor in tensors if tensor._base is not None)
    whole = [tensor for tensor in tensors if tensor._base is None and not _views_of(tensor, tensors)]
    return 0 < reached + sum(tensor.nbytes for tensor in whole) <= storage.nbytes() * MOST_REACHED // 100


def _views_of(base: torch.Tensor, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor for tensor in tensors if tensor._base is base]


def _extent(tensor: torch.Tensor) -> Extent:
    size = tensor.element_size()
    strides = tuple(stride * size for stride in tensor.stride())
    return Extent(int(tensor.storage_offset()) * size, tuple(tensor.shape), strides, size)


def _references(bases: list[torch.Tensor]) -> list[int]:
    """How often Python refers to each; variables of running functions, too, which no collector sees."""
    return [sys.getrefcount(base) for base in bases]


def _keeping(view: torch.Tensor, frames: Sequence[FrameType]) -> tuple[Site, Site] | None:
    """The line that made the view and the line that keeps it in a container or an attribute."""
    for holder in holders_of(view, frames):
        if not _lasts(holder):
            continue
        places = puts(holder, frames)
        if places:
            return view_site(places[-1]), places[-1].site
    return None


def _lasts(holder: Holder) -> bool:
    """A variable holds a view for a moment; a container or an attribute holds it for good."""
    return holder.inside or holder.name.owner is not None


def _counts_of_an_unheld_base() -> tuple[int, int, int]:
    """What C++ and Python count for a base that only its one view holds, and we as below; measured here."""
    view = torch.zeros(2)[:1]
    storage = view.untyped_storage()  # held, as it is there: that may count, too
    owners = torch._C._storage_Use_Count(storage._cdata)
    tensors = [item for item in (view, view._base) if item is not None]
    bases = [tensor for tensor in tensors if tensor._base is None]
    return _uses(bases[0]) - 1, owners - 2, _references(bases)[0]
