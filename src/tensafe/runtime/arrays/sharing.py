"""Arrays and tensors over one memory: written on one side, taken for unchanged on the other."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.compiler import is_compiling

from tensafe.facts import Call, Certainty, Kind, Memory, Moment, Site, Value
from tensafe.runtime import modes
from tensafe.runtime.arrays import memory, refills
from tensafe.runtime.arrays.histories import keeps_result, reads_first_again, updates
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import Place, site_of, user_place
from tensafe.runtime.storages.ledger import (
    LedgerHistory,
    RawWrite,
    Write,
    clock,
    ledger_of,
    ledger_of_storage,
)
from tensafe.runtime.storages.listeners import listen
from tensafe.runtime.storages.pictures import Drawn, memory_of, written_by
from tensafe.runtime.storages.weak import WeakFacts
from tensafe.runtime.watcher import Context, Watcher

IMPORTS = ("from_numpy", "as_tensor", "asarray")
MOST_PARTS = 512
MOST_LOOKS = 10_000
MOST_REFILLS = 16
MOST_WRITES = 16

Key = tuple[Place, int, tuple[int, ...]]


@dataclass(slots=True)
class Imported:
    """One part of an array that one line makes tensors of."""

    op: str
    digest: int
    order: int
    storages: list[weakref.ref[Any]] = field(default_factory=list)  # of the tensors made before
    changes: int = 0  # how often it had changed when it was imported again
    write: Write | None = None  # the first write through a tensor since
    writes: int = 0
    after: int = 0  # what the last of these writes left


@dataclass(slots=True)
class Exported:
    """An array over a tensor's memory."""

    place: Place
    array: weakref.ref[Any]
    order: int


class ArraySharing(Watcher):
    """Looks at a piece of memory whenever it crosses from one library to the other."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._imports: WeakFacts[dict[Key, Imported]] = WeakFacts()
        self._last: WeakFacts[dict[int, int]] = WeakFacts()  # by address: the digest at the last import
        self._exports: WeakFacts[list[Exported]] = WeakFacts()
        self._looks: dict[Place, int] = {}
        self._refills: dict[Place, int] = {}
        self._told: set[Place] = set()

    def install(self, patches: Patches) -> None:
        for name in IMPORTS:
            patches.wrap(torch, name, functools.partial(self._importer, f"torch.{name}"))
        patches.wrap(torch, "tensor", self._copier)
        patches.wrap(torch.Tensor, "numpy", self._exporter)

    def _importer(self, label: str, call: Callable[..., Any]) -> Callable[..., Any]:
        watch = self._context.guarded(label, self._imported)

        def imported(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            if args and isinstance(args[0], np.ndarray) and not is_compiling():
                watch(label, args[0], result, user_place(2))
            return result

        return functools.update_wrapper(imported, call)

    def _copier(self, call: Callable[..., Any]) -> Callable[..., Any]:
        watch = self._context.guarded("torch.tensor", self._copied)

        def tensor(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            if args and isinstance(args[0], np.ndarray) and not is_compiling():
                watch(args[0], result)
            return result

        return functools.update_wrapper(tensor, call)

    def _exporter(self, call: Callable[..., Any]) -> Callable[..., Any]:
        watch = self._context.guarded("Tensor.numpy", self._exported)

        def numpy(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = call(self, *args, **kwargs)
            if type(self) in PLAIN and not is_compiling():
                watch(self, result, user_place(2))
            return result

        return functools.update_wrapper(numpy, call)

    # --- arrays into tensors

    def _imported(self, label: str, array: Any, result: Any, place: Place | None) -> None:
        if place is None or type(result) not in PLAIN or modes.asked() or place in self._told:
            return
        looks = self._looks[place] = self._looks.get(place, 0) + 1
        if looks > MOST_LOOKS or not memory.shares_memory(result, array):
            return
        owner, first = memory.owner(array), memory.address(array)
        parts = self._imports.get(owner)
        if parts is None:
            parts = {}
            self._imports.put(owner, parts)
        storage = result.untyped_storage()
        digest = memory.digest(storage)
        self._look_for_refill(array, owner, first, digest)
        key = (place, first, array.shape)
        known = parts.get(key)
        if known is None:
            if len(parts) >= MOST_PARTS:
                return
            known = parts[key] = Imported(label, digest, next(clock))
        else:
            self._again(known, digest, place, result)
        known.storages = [*[ref for ref in known.storages if ref() is not None][-3:], weakref.ref(storage)]
        known.digest, known.write, known.writes = digest, None, 0
        self._hear(known, storage)

    def _hear(self, known: Imported, storage: torch.UntypedStorage) -> None:
        """Keep what the program's writes through this tensor leave in the memory."""
        own = weakref.ref(storage)

        def written(tensor: torch.Tensor, raw: RawWrite) -> None:
            written_storage = own()
            if written_storage is not None and known.storages[-1] is not None:
                known.write = known.write or Write(*raw)
                known.writes += 1
                if known.writes <= MOST_WRITES:
                    known.after = memory.digest(written_storage)

        listen(ledger_of_storage(storage), written)

    def _again(self, known: Imported, digest: int, place: Place, result: torch.Tensor) -> None:
        """The same memory is imported again by the same line."""
        write = known.write
        if write is not None and write.place is not None and known.writes <= MOST_WRITES:
            if digest == known.after and digest != known.digest and not updates(write.place, write.op):
                imported = Moment(Kind.EXPORTED, known.op, site_of(place), known.order)
                note = "again" if known.op == "torch.from_numpy" else "converted"
                self._told.add(place)
                drawn = memory_of(Drawn("array and tensor", result))
                self._report(site_of(write.place), write.op, note, (imported,), drawn)
        elif digest != known.digest:
            known.changes += 1
            alive = sum(ref() is not None for ref in known.storages)
            if alive >= 2 and known.changes >= 2:
                self._told.add(place)
                drawn = memory_of(Drawn("array and tensors", result))
                self._report(site_of(place), known.op, "tensors", (), drawn)

    def _copied(self, array: Any, result: Any) -> None:
        """`torch.tensor(array)`: a read of memory that was imported before."""
        owner = memory.owner(array)
        if self._last.get(owner) is None or modes.asked() or not array.flags.c_contiguous:
            return
        storage = result.untyped_storage()
        if result.element_size() == array.itemsize:
            self._look_for_refill(array, owner, memory.address(array), memory.digest(storage))

    def _look_for_refill(self, array: Any, owner: Any, first: int, digest: int) -> None:
        """Changed since it was last read here, though the caller still calls it the old one?"""
        last = self._last.get(owner)
        if last is None:
            last = {}
            self._last.put(owner, last)
        before = last.get(first)
        if before is None or before == digest or len(last) > MOST_PARTS:
            last.setdefault(first, digest)
            return
        place = user_place(5)
        if place is None or self._refills.get(place, 0) >= MOST_REFILLS:
            last[first] = digest
            return
        self._refills[place] = self._refills.get(place, 0) + 1
        refill = refills.find(array)
        last[first] = digest
        if refill is not None and refill.place not in self._told:
            self._told.add(refill.place)
            read = Moment(Kind.COPIED, "", site_of(place), next(clock))
            others = [Moment(Kind.WRITTEN, "", site, next(clock)) for site in refill.writes]
            self._report(refill.site, "", "refilled", (*others, read))

    # --- tensors into arrays

    def _exported(self, tensor: torch.Tensor, array: Any, place: Place | None) -> None:
        if place is None or modes.asked() or place in self._told or not isinstance(array, np.ndarray):
            return
        if not memory.shares_memory(tensor, array):
            return
        storage = tensor.untyped_storage()
        before = [item for item in self._exports.get(storage) or () if item.array() is not None][-8:]
        write = ledger_of(tensor).write
        if write is not None and write.place is not None:
            self._look_for_history(before, write, place, tensor)
        self._exports.put(storage, [*before, Exported(place, weakref.ref(array), next(clock))])

    def _look_for_history(
        self, before: list[Exported], write: Write, place: Place, tensor: torch.Tensor
    ) -> None:
        old = [item for item in before if item.order < write.order]
        here = [item for item in old if item.place == place]
        written = Moment(Kind.WRITTEN, write.op, site_of(write.place), write.order)
        if len(here) >= (1 if keeps_result(place) else 2):
            self._told.add(place)
            drawn = _drawn(tensor, write)
            self._report(site_of(place), "Tensor.numpy", "arrays", (written,), drawn)
            return
        for item in old:
            if item.place not in self._told and reads_first_again(item.place, place):
                self._told.add(item.place)
                drawn = _drawn(tensor, write)
                self._report(site_of(item.place), "Tensor.numpy", "arrays", (written,), drawn)

    def _report(
        self,
        site: Site | None,
        op: str,
        note: str,
        trail: tuple[Moment, ...],
        drawn: tuple[Memory, ...] = (),
    ) -> None:
        if site is None:
            return
        roles = {"memory": Value(frozenset(), trail)}
        call = Call(Kind.EXPORTED, op, site, next(clock), roles, Certainty.DID, note, drawn)
        self._context.ask(call, LedgerHistory({}))


def _drawn(tensor: torch.Tensor, write: Write) -> tuple[Memory, ...]:
    """What the arrays and the tensor have, and what was written."""
    return memory_of(Drawn("arrays and tensor", tensor), also=written_by(write, ledger_of(tensor)))
