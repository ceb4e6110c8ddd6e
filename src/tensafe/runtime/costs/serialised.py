"""Saves, pickles and deep copies that take far more bytes than the tensors in them have."""

from __future__ import annotations

import ast
import functools
import pickle
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.compiler import is_compiling

from tensafe.facts import Call, Certainty, Kind, Memory, Moment, Value
from tensafe.memory import Extent, covered
from tensafe.runtime import modes
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import Place, site_of, user_places
from tensafe.runtime.places.view_sources import VIEWING
from tensafe.runtime.refusals.frames import statement_at
from tensafe.runtime.refusals.origins import Put, binding
from tensafe.runtime.storages.ledger import LedgerHistory, clock, ledger_of_storage
from tensafe.runtime.storages.pictures import reached_in
from tensafe.runtime.watcher import Context, Watcher

WORTH_A_NOTICE = 64 << 10  # dead bytes written by one line
WORTH_A_WARNING = 512 << 10
MOST_LINES = 1_000
MOST_TENSORS = 200_000
MOST_FRAMES = 50
MOST_DRAWN = 8

Wrapped = Callable[..., Any]
Written = dict[int, tuple[int, list[Extent]]]
"""Each storage that is written as a whole: its size, and what of it the saved tensors reach."""


@dataclass(slots=True)
class Bloat:
    """What one line wrote: how often, how many bytes, and how many of them for nothing."""

    op: str
    place: Place
    times: int = 0
    nbytes: int = 0
    dead: int = 0
    memory: tuple[Memory, ...] = ()  # the most wasteful storage of the first time


class _OfThread(threading.local):
    """What one thread is saving now."""

    def __init__(self) -> None:
        self.written: Written | None = None


class Serialised(Watcher):
    """Collects the tensors of each save as they are pickled."""

    def __init__(self, context: Context) -> None:
        self._ask = context.ask
        self._guarded = context.guarded
        self._own = _OfThread()
        self._bloats: dict[tuple[str, int, int], Bloat] = {}
        self._memo: tuple[int, Place | None] = (0, None)
        self._copied: Written = {}

    def install(self, patches: Patches) -> None:
        patches.wrap(torch, "save", functools.partial(self._saves, "torch.save"))
        for name in ("dump", "dumps"):
            patches.wrap(pickle, name, functools.partial(self._saves, f"pickle.{name}"))
        patches.wrap(torch.Tensor, "__reduce_ex__", self._reduces)
        patches.wrap(torch.Tensor, "__deepcopy__", self._deepcopies)
        numpy = sys.modules.get("numpy")
        for name in ("savez", "savez_compressed") if numpy is not None else ():
            patches.wrap(numpy, name, functools.partial(self._archives, f"numpy.{name}"))

    # --- pickles

    def _saves(self, label: str, call: Wrapped) -> Wrapped:
        own, ended = self._own, self._guarded(label, self._ended)

        def save(*args: Any, **kwargs: Any) -> Any:
            if own.written is not None or is_compiling():
                return call(*args, **kwargs)
            own.written = {}
            try:
                result = call(*args, **kwargs)
                if own.written:
                    ended(label, own.written, _own_place())
            finally:
                own.written = None
            return result

        return functools.update_wrapper(save, call)

    def _reduces(self, call: Wrapped) -> Wrapped:
        own, note = self._own, self._guarded("a saved tensor", _note)

        def reduce_ex(self: Any, protocol: Any) -> Any:
            if own.written is not None:
                note(own.written, self)
            return call(self, protocol)

        return functools.update_wrapper(reduce_ex, call)

    def _ended(self, label: str, written: Written, place: Place | None) -> None:
        total = sum(nbytes for nbytes, _ in written.values())
        dead = sum(max(0, nbytes - covered(extents).nbytes) for nbytes, extents in written.values())
        bloat = self._add(label, place, total, dead)
        if bloat is not None and bloat.times == 1:
            bloat.memory = (_most_wasteful(written),)

    def _add(self, label: str, place: Place | None, nbytes: int, dead: int) -> Bloat | None:
        if place is None or not dead or len(self._bloats) >= MOST_LINES:
            return None
        bloat = self._bloats.setdefault((label, id(place[0]), place[1]), Bloat(label, place))
        bloat.times += 1
        bloat.nbytes += nbytes
        bloat.dead += dead
        return bloat

    # --- deep copies, one memo each

    def _deepcopies(self, call: Wrapped) -> Wrapped:
        copied = self._guarded("a deep copy", self._deep_copied)

        def deepcopy(self: Any, memo: Any) -> Any:
            if type(self) in PLAIN and id(self) not in memo and not is_compiling():
                copied(self, id(memo))
            return call(self, memo)

        return functools.update_wrapper(deepcopy, call)

    def _deep_copied(self, tensor: torch.Tensor, memo: int) -> None:
        if not tensor.is_leaf:
            return  # refused
        if memo != self._memo[0]:
            self._end_copy()
            self._memo = memo, _own_place()
        _note(self._copied, tensor)

    def _end_copy(self) -> None:
        if self._copied:
            self._ended("copy.deepcopy", self._copied, self._memo[1])
        self._copied = {}

    # --- archives of arrays

    def _archives(self, label: str, call: Wrapped) -> Wrapped:
        ended = self._guarded(label, self._archived)

        def savez(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            ended(label, [*args[1:], *kwargs.values()], _own_place())
            return result

        return functools.update_wrapper(savez, call)

    def _archived(self, label: str, items: Iterable[Any], place: Place | None) -> None:
        """Arrays over the same memory are written once for each name."""
        extents = [extent for item in items if (extent := _addressed(item)) is not None]
        total = sum(extent.nbytes for extent in extents)
        if len(extents) > 1:
            self._add(label, place, total, total - covered(extents).nbytes)

    # --- the end

    def finish(self) -> None:
        self._end_copy()
        for bloat in self._bloats.values():
            if bloat.dead >= WORTH_A_NOTICE and bloat.dead * 2 >= bloat.nbytes * self._least(bloat):
                self._report(bloat)

    def _least(self, bloat: Bloat) -> float:
        """The share of dead bytes, in halves, from which it is told; a tie is written twice at most."""
        return 0.5 if bloat.op.startswith("numpy") else 1.0

    def _report(self, bloat: Bloat) -> None:
        site = site_of(bloat.place)
        made = _viewed(bloat.place)
        trail = [Moment(Kind.SERIALISED, bloat.op, site, 1)]
        if made is not None:
            trail.insert(0, Moment(Kind.VIEWED, "", made.site, 0))
        certainty = Certainty.DID if bloat.dead >= WORTH_A_WARNING else Certainty.OFTEN_MEANT
        note = f"{bloat.dead} of {bloat.nbytes} bytes in {bloat.times}"
        roles = {"saved": Value(frozenset(), tuple(trail))}
        call = Call(Kind.SERIALISED, bloat.op, site, next(clock), roles, certainty, note, bloat.memory)
        self._ask(call, LedgerHistory({}))


def _own_place() -> Place | None:
    """The innermost line of the program's own files, or else of a package that it uses."""
    places = user_places(3, MOST_FRAMES)
    return next((place for place in places if "-packages" not in place[0].co_filename), (*places, None)[0])


def _note(written: Written, tensor: torch.Tensor) -> None:
    """A tensor is written: with it, its whole storage."""
    if type(tensor) not in PLAIN or modes.asked() or len(written) >= MOST_TENSORS:
        return
    if tensor.layout is not torch.strided or tensor.device.type == "meta" or tensor.is_nested:
        return
    storage = tensor.untyped_storage()
    size = tensor.element_size()
    strides = tuple(stride * size for stride in tensor.stride())
    extent = Extent(int(tensor.storage_offset()) * size, tuple(tensor.shape), strides, size)
    key = int(ledger_of_storage(storage).id)
    written.setdefault(key, (storage.nbytes(), []))[1].append(extent)


def _most_wasteful(written: Written) -> Memory:
    """The storage with the most bytes that nothing saved reaches."""
    nbytes, extents = max(written.values(), key=lambda one: one[0] - covered(one[1]).nbytes)
    return Memory(nbytes, tuple(reached_in(extent, "saved") for extent in extents[:MOST_DRAWN]))


def _addressed(item: Any) -> Extent | None:
    interface = getattr(item, "__array_interface__", None) if type(item).__name__ == "ndarray" else None
    if not interface or not item.nbytes:
        return None
    return Extent(interface["data"][0], item.shape, item.strides, item.itemsize)


def _viewed(place: Place) -> Put | None:
    """Where the saved name was bound in the same function."""
    statement = statement_at(place)
    calls = (
        [part for part in ast.walk(statement) if isinstance(part, ast.Call)] if statement is not None else []
    )
    arguments = [part for call in calls for argument in call.args[:1] for part in ast.walk(argument)]
    puts = [put for part in arguments if isinstance(part, ast.Name) and (put := binding(place, part.id))]
    return next((put for put in puts if _is_view(put.value)), next(iter(puts), None))


def _is_view(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Subscript) or (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in VIEWING
    )
