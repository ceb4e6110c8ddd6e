"""The copies that a snapshot holds of its tensors, and how they are taken again."""

from __future__ import annotations

import torch

from tensafe.copies.snapshots.pieces import (
    Pieces,
    Storages,
    all_cloned,
    all_lazily,
    copy_batch,
    lazily,
    pieces_of,
    room_for,
    seated,
    storages_of,
)
from tensafe.memory.from_torch import parts_of


class Copies:
    """Copies of the pieces of memory behind some tensors.

    Args:
        tensors: what is copied, by number.
        lazy: True for copy-on-write clones wherever that is safe, False for none, None for those of frozen
            Parameters in the memory of the CPU: nobody is expected to write them.
        host: keep copies of CUDA tensors in pinned host memory.
        before: copies whose memory is used again where it fits.
        storages: what `usual_storages` gave for the tensors, where it was asked already.
    """

    def __init__(
        self,
        tensors: list[torch.Tensor],
        lazy: bool | None,
        host: bool,
        before: Copies | None = None,
        storages: Storages | None = None,
    ) -> None:
        self.pieces: Pieces = pieces_of(tensors, storages)
        self._tensors = tensors
        self._host = host
        live = self.pieces.live
        if lazy is None:
            self._lazy = {place for place, one in enumerate(live) if _is_frozen(one)}
        else:
            self._lazy = set(range(len(live))) if lazy else set()
        self._lazy -= self.pieces.whole
        self._spare = _by_look(before) if before is not None else {}
        self.saved: list[torch.Tensor] = list(live)
        self._fresh: set[int] = set()
        self._take(storages=storages if self.pieces.seats is None else None)
        self._spare = {}

    def again(self) -> None:
        """Copy the same tensors again, into the same memory."""
        if not self._lazy and not self.pieces.whole:
            copy_batch(self.saved, self.pieces.live)
        else:
            self._take(first=False)

    def still_fit(self) -> bool:
        """Whether tensors that share memory share it as they did; those that are alone are asked nothing."""
        return self.pieces.seats is None or pieces_of(self._tensors).seats == self.pieces.seats

    def of(self, number: int) -> torch.Tensor:
        """The copy of a tensor; a view into memory of ours."""
        return seated(self.pieces.seat(number), self.saved)

    @property
    def any_lazy(self) -> bool:
        return bool(self._lazy)

    @property
    def nbytes(self) -> int:
        """Bytes of the copies; lazy ones count as they will once they are written."""
        return sum(_nbytes(one) for one in self.saved)

    @property
    def lazy_count(self) -> int:
        """How many pieces are copy-on-write clones."""
        return len(self._lazy - self._fresh)

    def _take(self, first: bool = True, storages: Storages | None = None) -> None:
        live, saved = self.pieces.live, self.saved
        lazy = len(self._lazy) == len(live)
        clones = all_lazily(live, storages or storages_of(live)) if lazy else None
        if clones is None and first and not (self._lazy or self.pieces.whole or self._spare):
            clones = all_cloned(live)
        if clones is not None:
            self.saved, self._fresh = clones, set()
            return
        targets, sources = [], []
        for place in range(len(live)):
            one = live[place]
            if place in self.pieces.whole:
                saved[place] = one.detach().clone()
                continue
            if place in self._lazy:
                clone = lazily(one)
                if clone is not None:
                    saved[place] = clone
                    self._fresh.discard(place)
                    continue
            if (first or place in self._lazy) and place not in self._fresh:
                saved[place] = self._room(one)
                if place in self._lazy:
                    self._fresh.add(place)
            targets.append(saved[place])
            sources.append(one)
        copy_batch(targets, sources)

    def _room(self, live: torch.Tensor) -> torch.Tensor:
        device = torch.device("cpu") if self._host and live.is_cuda else live.device
        spare = self._spare.get((live.dtype, live.shape, device))
        return spare.pop() if spare else room_for(live, self._host)


def _is_frozen(one: torch.Tensor) -> bool:
    return type(one) is torch.nn.Parameter and not one.requires_grad and one.is_cpu


def _by_look(before: Copies) -> dict[tuple[torch.dtype, torch.Size, torch.device], list[torch.Tensor]]:
    """Memory that may be written, by what fits into it."""
    spare: dict[tuple[torch.dtype, torch.Size, torch.device], list[torch.Tensor]] = {}
    kept_out = before._lazy - before._fresh | before.pieces.whole
    for place, one in enumerate(before.saved):
        if place not in kept_out:
            spare.setdefault((one.dtype, one.shape, one.device), []).append(one)
    return spare


def _nbytes(one: torch.Tensor) -> int:
    if one.layout is torch.strided and not one.is_nested:
        return one.nbytes
    return sum(part.extent.nbytes for part in parts_of(one))
