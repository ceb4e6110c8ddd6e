"""Operations that write what they also read, or one place several times, where PyTorch lets it through."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_compiling

from tensafe.facts import Call, Certainty, Kind, Moment, StorageId, Value
from tensafe.memory import Extent, meet, meet_itself
from tensafe.memory.from_torch import pair_of
from tensafe.runtime import modes
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import INTERNAL, Place, site_of, user_place
from tensafe.runtime.storages.ledger import LedgerHistory, clock, ledger_of
from tensafe.runtime.storages.pictures import Drawn, memory_of, written_part
from tensafe.runtime.storages.weak import WeakFacts
from tensafe.runtime.watcher import Context, Watcher
from tensafe.runtime.writes.trials import goes_wrong, values_disagree

MOST_SITES = 1_000
MOST_LOOKS = 4
STEPS = 2_000
MAKERS = ("unfold", "as_strided", "expand", "expand_as", "broadcast_to")


class Overlaps(Watcher):
    """Compares the extents of what is written with what is read; both lie in one storage."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._made: WeakFacts[tuple[str, Place, int]] = WeakFacts()
        self._looks: dict[Place, int] = {}
        self._told: set[Place] = set()

    def install(self, patches: Patches) -> None:
        for name in MAKERS:
            patches.wrap(torch.Tensor, name, functools.partial(self._maker, f"Tensor.{name}"))

    def forget(self, tensor: torch.Tensor) -> None:
        self._made.forget(tensor)

    def _maker(self, label: str, call: Callable[..., Any]) -> Callable[..., Any]:
        getframe = sys._getframe

        @self._context.guarded.watcher(label)
        def remember(result: Any, place: Place) -> None:
            if type(result) in PLAIN and not modes.asked():
                self._made.put(result, (label, place, next(clock)))

        def make(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = call(self, *args, **kwargs)
            frame = getframe(1)
            if not is_compiling() and not INTERNAL[frame.f_code.co_filename]:
                remember(result, (frame.f_code, frame.f_lasti))
            return result

        return functools.update_wrapper(make, call)

    def overlapping(self, op: str, target: torch.Tensor, arguments: tuple[Any, ...]) -> None:
        read = arguments[-1]
        place = user_place(4) if read is not target else None
        if place is None or not self._looks_again(place):
            return
        written = written_part(op, target, arguments)
        if written is None or _identical(written, read):
            return
        pair = pair_of(written, read)
        if pair is None or not meet(pair[0], pair[1], STEPS):
            return
        if goes_wrong("copy_" if op.endswith("__setitem__") else op.rpartition(".")[2], written, read):
            self._looks[place] = MOST_LOOKS
            parts = (Drawn("written here", written), Drawn("read here", read))
            self._report(op, target, place, "input", (), parts)

    def _looks_again(self, place: Place) -> bool:
        """The first writes of a line are looked at."""
        looks = self._looks.get(place, 0)
        if looks >= MOST_LOOKS or (not looks and len(self._looks) >= MOST_SITES):
            return False
        self._looks[place] = looks + 1
        return True

    def first_writes(self, op: str, target: torch.Tensor, arguments: tuple[Any, ...]) -> None:
        if target.layout is not torch.strided or target.is_contiguous() or target.numel() < 2:
            return
        written = written_part(op, target, arguments)
        if written is None:
            return
        extent = Extent(0, tuple(written.shape), tuple(written.stride()), 1)
        if not meet_itself(extent, STEPS):
            return
        disagree = values_disagree(op.rpartition(".")[2], written, arguments)
        place = user_place(4)
        if disagree is None or place is None or place in self._told:
            return
        self._told.add(place)
        made = self._made.get(target)
        trail = () if made is None else (Moment(Kind.VIEWED, made[0], site_of(made[1]), made[2]),)
        self._report(op, target, place, "itself", trail, (Drawn("written here", written),), disagree)

    def _report(
        self,
        op: str,
        target: torch.Tensor,
        place: Place,
        note: str,
        trail: tuple[Moment, ...],
        parts: tuple[Drawn, ...],
        certainty: Certainty = Certainty.DID,
    ) -> None:
        storage: StorageId = ledger_of(target).id
        roles = {"target": Value(frozenset({storage}), trail)}
        call = Call(
            Kind.OVERLAPPED, op, site_of(place), next(clock), roles, certainty, note, memory_of(*parts)
        )
        self._context.ask(call, LedgerHistory({}))


def _identical(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (
        one.storage_offset() == other.storage_offset()
        and one.shape == other.shape
        and one.stride() == other.stride()
        and one.dtype is other.dtype
    )
