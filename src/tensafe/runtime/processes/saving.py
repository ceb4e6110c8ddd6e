"""Saves that run beside the program: tensors that are written before the other thread has read them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch.compiler import is_compiling

from tensafe.facts import Call, Kind, Memory, Moment, Value
from tensafe.runtime import modes
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import Place, site_of, user_place
from tensafe.runtime.places.variables import held
from tensafe.runtime.storages.ledger import (
    LedgerHistory,
    RawWrite,
    Write,
    clock,
    ledger_of,
    ledger_of_storage,
)
from tensafe.runtime.storages.listeners import deafen, listen
from tensafe.runtime.storages.pictures import Drawn, memory_of, written_by
from tensafe.runtime.storages.weak import WeakFacts
from tensafe.runtime.watcher import Context, Watcher

MOST_TENSORS = 4096
MOST_DEPTH = 4


@dataclass(slots=True)
class Given:
    """A state that was handed to another thread, and the first write into it by the one who gave it."""

    place: Place
    thread: int
    order: int
    write: Write | None = None

    def written(self, tensor: torch.Tensor, raw: RawWrite) -> None:
        if self.write is None and threading.get_ident() == self.thread:
            self.write = Write(*raw)


class Saving(Watcher):
    """Hears the writes into what another thread was given to save, until it has saved it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._given: WeakFacts[Given] = WeakFacts()  # by tensor: each `state_dict()` gives others
        self._last: WeakFacts[Given] = WeakFacts()  # by storage
        self._told: set[Place] = set()

    def install(self, patches: Patches) -> None:
        patches.wrap(threading.Thread, "start", self._start)
        patches.wrap(ThreadPoolExecutor, "submit", self._submit)
        patches.wrap(torch, "save", self._save)

    def _start(self, call: Callable[..., Any]) -> Callable[..., Any]:
        give = self._context.guarded("Thread.start", self._give)

        def start(self: Any) -> None:
            own = self.__dict__
            arguments = [*(own.get("_args") or ()), *(own.get("_kwargs") or {}).values()]
            if arguments:
                give(arguments, user_place(2))
            call(self)

        return functools.update_wrapper(start, call)

    def _submit(self, call: Callable[..., Any]) -> Callable[..., Any]:
        give = self._context.guarded("ThreadPoolExecutor.submit", self._give)

        def submit(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            if args or kwargs:
                give([*args, *kwargs.values()], user_place(2))
            return call(self, fn, *args, **kwargs)

        return functools.update_wrapper(submit, call)

    def _give(self, arguments: list[Any], place: Place | None) -> None:
        """A dict of tensors goes to another thread: what it holds now is what is meant."""
        states = [item for item in arguments if isinstance(item, Mapping)]
        if place is None or not states or place in self._told or modes.asked():
            return
        given = Given(place, threading.get_ident(), next(clock))
        for tensor in _tensors(states, MOST_DEPTH):
            listen(ledger_of(tensor), given.written)
            self._given.put(tensor, given)
            self._last.put(tensor.untyped_storage(), given)

    def _save(self, call: Callable[..., Any]) -> Callable[..., Any]:
        before = self._context.guarded("torch.save", self._saving)
        after = self._context.guarded("torch.save", self._saved)

        def save(obj: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not _other_threads():
                return call(obj, *args, **kwargs)
            heard: list[Any] = []
            before(obj, heard, user_place(2))
            try:
                return call(obj, *args, **kwargs)
            finally:
                after(obj, heard, user_place(2))

        return functools.update_wrapper(save, call)

    def _saving(self, obj: Any, heard: list[Any], place: Place | None) -> None:
        saver, writes = threading.get_ident(), []

        def written(tensor: torch.Tensor, raw: RawWrite) -> None:
            if threading.get_ident() != saver:
                writes.append(Write(*raw))

        heard += [written, writes]
        for tensor in _tensors([obj], MOST_DEPTH):
            listen(ledger_of(tensor), written)

    def _saved(self, obj: Any, heard: list[Any], place: Place | None) -> None:
        if not heard:
            return
        given: Given | None = None
        drawn: tuple[Memory, ...] = ()
        for tensor in _tensors([obj], MOST_DEPTH):
            storage = tensor.untyped_storage()
            deafen(ledger_of_storage(storage), heard[0])
            known = self._given.get(tensor) or self._last.get(storage)
            if known is None:
                continue
            deafen(ledger_of_storage(storage), known.written)
            if known.thread != threading.get_ident() and known.write is not None:
                drawn = drawn or memory_of(
                    Drawn("being saved", tensor), also=written_by(known.write, ledger_of(tensor))
                )
                given = given or known
            self._given.forget(tensor)
            if self._last.get(storage) is known:
                self._last.forget(storage)
        saved = Moment(Kind.SERIALISED, "torch.save", site_of(place), next(clock))
        if given is not None and given.write is not None:
            self._report(given.place, given.write, "given", saved, drawn)
        elif heard[1] and place is not None:
            self._report(place, heard[1][0], "during", saved)

    def _report(
        self, place: Place, write: Write, note: str, saved: Moment, drawn: tuple[Memory, ...] = ()
    ) -> None:
        site = site_of(place)
        if place in self._told or site is None:
            return
        self._told.add(place)
        written = Moment(Kind.WRITTEN, write.op, site_of(write.place), write.order)
        roles = {"saving": Value(frozenset(), (written, saved))}
        call = Call(Kind.WRITTEN, write.op, site, next(clock), roles, note=note, memory=drawn)
        self._context.ask(call, LedgerHistory({}))


def _other_threads() -> bool:
    return threading.active_count() > 1


def _tensors(items: list[Any], depth: int) -> Iterator[torch.Tensor]:
    """The plain tensors in nested dicts and lists, the first so many."""
    for number, tensor in enumerate(_nested(items, depth)):
        if number >= MOST_TENSORS:
            return
        yield tensor


def _nested(items: list[Any], depth: int) -> Iterator[torch.Tensor]:
    for item in items:
        if type(item) in PLAIN:
            if item.layout is torch.strided:
                yield item
        elif depth:
            yield from _nested([part for _, part in held(item, MOST_TENSORS)], depth - 1)
