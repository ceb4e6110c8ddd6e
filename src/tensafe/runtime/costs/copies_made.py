"""Copies of tensors, by line: which were needed, which were made again and again from the same memory.

A copy is needless when it dies unwritten and its source was not written either meanwhile. Only large ones are
followed, unless the whole table was asked for (`tensafe run --copies`).
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_compiling
from torch.overrides import handle_torch_function, has_torch_function

from tensafe.facts import Call, Certainty, Kind, Moment, Value
from tensafe.runtime import modes
from tensafe.runtime.costs.lives import Lives, Tally
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import Place, site_of, user_place
from tensafe.runtime.storages.ledger import LedgerHistory, clock, ledger_of_storage
from tensafe.runtime.storages.pictures import Drawn, memory_of
from tensafe.runtime.watcher import Context, Watcher
from tensafe.runtime.writes.discarded import _uses, temporary_counts

Wrapped = Callable[..., Any]

LARGE_ENOUGH = 16 << 10  # bytes of one copy that is followed
WORTH_A_NOTICE = 256 << 10  # needless bytes at one line
WORTH_A_WARNING = 64 << 20  # at one line, in copies that are each
LARGE = 1 << 20  # as large: many small ones are cheap
FEWEST_AGAIN = 3
MOST_LINES = 10_000
HIDDEN = ("contiguous", "reshape", "flatten")


class _OfThread(threading.local):
    """Where one thread stands."""

    def __init__(self) -> None:
        self.copying = 0  # inside a deep copy: the clone in it is a part of that
        self.place: Place | None = None  # of a call that a function mode of the program carries out


class CopiesMade(Watcher):
    """Wraps what copies, and adds up bytes by line."""

    def __init__(self, context: Context, smallest: int = LARGE_ENOUGH) -> None:
        self._ask = context.ask
        self._guarded = context.guarded
        self._smallest = smallest
        self.tallies: dict[tuple[str, int, int], Tally] = {}
        self._lives = Lives(lambda died: context.guarded("a copy", died))
        self._own = _OfThread()
        self._method_count, _ = temporary_counts()
        fresh = torch.empty(1)
        self._holders = _uses(fresh)
        memory = fresh.untyped_storage()  # held, as it is below: that may count, too
        self._owners = torch._C._storage_Use_Count(memory._cdata)

    def install(self, patches: Patches) -> None:
        patches.wrap(torch.Tensor, "clone", self._clone)
        patches.wrap(torch, "clone", self._clone_function)
        patches.wrap(torch.Tensor, "__deepcopy__", self._deepcopy)
        patches.wrap(torch.nn.Parameter, "__deepcopy__", self._deepcopy)
        patches.wrap(torch, "tensor", self._tensor)
        for name in HIDDEN:
            patches.wrap(torch.Tensor, name, functools.partial(self._hidden, f"Tensor.{name}"))

    # --- explicit copies

    def _clone(self, call: Wrapped) -> Wrapped:
        copied, own = self._guarded("a copy", self._copied), self._own
        modes_on, getrefcount = torch._C._len_torch_function_stack, sys.getrefcount
        strided, smallest = torch.strided, self._smallest
        temporary = self._method_count + 1  # the call below holds it, too

        def clone(self: Any, *args: Any, **kwargs: Any) -> Any:
            if (modes_on() or type(self) not in PLAIN) and has_torch_function((self,)):
                before, own.place = own.place, own.place or user_place(2)
                try:
                    return handle_torch_function(clone, (self,), self, *args, **kwargs)
                finally:
                    own.place = before
            result = call(self, *args, **kwargs)
            try:
                large = result.layout is strided and result.nbytes >= smallest
            except RuntimeError:  # sizes that are symbols
                return result
            if large and not own.copying and not is_compiling():
                copied("Tensor.clone", self, result, getrefcount(self) <= temporary)
            return result

        return functools.update_wrapper(clone, call)

    def _clone_function(self, call: Wrapped) -> Wrapped:
        copied = self._guarded("a copy", self._copied)

        def clone(*args: Any, **kwargs: Any) -> Any:
            if has_torch_function(args):
                return handle_torch_function(clone, args, *args, **kwargs)
            result = call(*args, **kwargs)
            if args and not is_compiling():
                copied("torch.clone", args[0], result, False)
            return result

        return functools.update_wrapper(clone, call)

    def _deepcopy(self, call: Wrapped) -> Wrapped:
        copied, own = self._guarded("a copy", self._copied), self._own

        def deepcopy(self: Any, memo: Any) -> Any:
            if id(self) in memo:
                return call(self, memo)
            own.copying += 1
            try:
                result = call(self, memo)
            finally:
                own.copying -= 1
            if not own.copying and not is_compiling():
                copied("copy.deepcopy", self, result, False)
            return result

        return functools.update_wrapper(deepcopy, call)

    def _tensor(self, call: Wrapped) -> Wrapped:
        """`torch.tensor(array)`, where only the call holds the array: `from_numpy` would take it over."""
        dropped, smallest = self._guarded("torch.tensor", self._dropped_array), self._smallest
        most = _references_of_a_temporary()

        def tensor(*args: Any, **kwargs: Any) -> Any:
            numpy = sys.modules.get("numpy")
            fresh = (
                numpy is not None
                and args
                and type(args[0]) is numpy.ndarray
                and args[0].nbytes >= smallest
                and sys.getrefcount(args[0]) <= most
                and not is_compiling()
            )
            result = call(*args, **kwargs)
            if fresh:
                dropped(args[0], result)
            return result

        return functools.update_wrapper(tensor, call)

    def _dropped_array(self, array: Any, result: torch.Tensor) -> None:
        whole = array.base is None and array.flags.owndata and array.flags.c_contiguous
        if not whole or modes.asked() or result.nbytes != array.nbytes or result.device.type != "cpu":
            return
        tally = self._tally("torch.tensor", user_place(4), result.nbytes)
        if tally is not None:
            tally.dead_nbytes += result.nbytes
            tally.needless_nbytes += result.nbytes
            tally.fresh_nbytes += result.nbytes

    def _copied(self, op: str, source: Any, copy: Any, temporary: bool) -> None:
        if not self._is_followed(source, copy):
            return
        tally = self._tally(op, self._own.place or user_place(4), copy.nbytes)
        if tally is None or not _is_twin(source, copy):
            return
        _draw(tally, source, copy)
        memory = source.untyped_storage()
        if memory.nbytes() > 2 * copy.nbytes or not memory.resizable() or memory.is_shared():
            return  # others see this memory; or the copy lets a large one go
        if temporary and source._base is None and self._is_held_by_nobody(source, memory):
            tally.fresh_nbytes += copy.nbytes
        self._lives.begin(tally, memory, copy.untyped_storage(), copy.nbytes)

    def _is_followed(self, source: Any, copy: Any) -> bool:
        """Whether both are plain tensors over memory of their own, and large enough."""
        return (
            type(source) in PLAIN
            and type(copy) in PLAIN
            and not modes.asked()
            and source.layout is copy.layout is torch.strided
            and copy.nbytes >= self._smallest
            and not (source.is_nested or copy.is_nested or copy.is_meta)
            and not torch._C._functorch.is_functorch_wrapped_tensor(copy)
        )

    def _is_held_by_nobody(self, tensor: torch.Tensor, memory: torch.UntypedStorage) -> bool:
        """Whether neither autograd nor another tensor holds what Python holds but for a moment."""
        owners = torch._C._storage_Use_Count(memory._cdata)
        return _uses(tensor) <= self._holders and owners <= self._owners

    def _tally(self, op: str, place: Place | None, nbytes: int) -> Tally | None:
        if place is None:
            return None
        key = (op, id(place[0]), place[1])
        tally = self.tallies.get(key)
        if tally is None:
            if len(self.tallies) >= MOST_LINES:
                return None
            tally = self.tallies[key] = Tally(op, place)
        tally.times += 1
        tally.nbytes += nbytes
        return tally

    # --- hidden copies

    def _hidden(self, label: str, call: Wrapped) -> Wrapped:
        hidden = self._guarded("a hidden copy", self.copied_silently)
        own, modes_on = self._own, torch._C._len_torch_function_stack

        def shaped(self: Any, *args: Any, **kwargs: Any) -> Any:
            if (modes_on() or type(self) not in PLAIN) and has_torch_function((self,)):
                before, own.place = own.place, own.place or user_place(2)
                try:
                    return handle_torch_function(shaped, (self,), self, *args, **kwargs)
                finally:
                    own.place = before
            result = call(self, *args, **kwargs)
            if result is not self and not result._is_view() and not is_compiling():
                hidden(label, self, result)
            return result

        return functools.update_wrapper(shaped, call)

    def made(self, op: str, copy: Any) -> None:
        """Memory was filled with the contents of something that is not followed."""
        if self._is_followed(copy, copy):
            self._tally(op, user_place(4), copy.nbytes)

    def copied_silently(self, op: str, source: Any, copy: Any, whole: bool = True) -> None:
        """A call gave fresh memory; `whole` says that the source alone decides what is in it."""
        if not self._is_followed(source, copy):
            return
        memory = source.untyped_storage()
        if memory is copy.untyped_storage():
            return
        tally = self._tally(op, self._own.place or user_place(4), copy.nbytes)
        if tally is None:
            return
        tally.explicit = False
        _draw(tally, source, copy)
        ledger = ledger_of_storage(memory)
        write = ledger.raw[3] if ledger.raw is not None else 0
        read = (int(ledger.id), write, source.storage_offset(), source.shape, source.stride())
        if whole and read == tally.last_read and ledger.exported is None:
            tally.same_nbytes += copy.nbytes
            tally.same_times += 1
        tally.last_read = read

    # --- the end

    def finish(self) -> None:
        self._lives.end()
        for tally in self.tallies.values():
            if tally.op == "copy.deepcopy":
                wasted = tally.needless_nbytes if tally.is_always_needless else 0
                self._tell(tally, wasted, wasted)
            elif tally.explicit:
                self._tell(tally, tally.needless_nbytes, tally.fresh_nbytes)
            elif tally.same_times >= FEWEST_AGAIN:
                self._tell(tally, tally.same_nbytes, tally.same_nbytes)

    def _tell(self, tally: Tally, nbytes: int, certain_nbytes: int) -> None:
        if nbytes < WORTH_A_NOTICE:
            return
        site = site_of(tally.place)
        if site is None or "-packages" in site.path:
            return
        is_large = certain_nbytes >= WORTH_A_WARNING and tally.nbytes >= LARGE * tally.times
        certainty = Certainty.MAY if is_large else Certainty.OFTEN_MEANT
        moment = Moment(Kind.COPIED, tally.op, site, 0, note="a temporary" if tally.fresh_nbytes else "")
        roles = {"copy": Value(frozenset(), (moment,))}
        note = f"{nbytes} bytes in {tally.times}"
        call = Call(Kind.COPIED, tally.op, site, next(clock), roles, certainty, note, tally.memory)
        self._ask(call, LedgerHistory({}))


def _draw(tally: Tally, source: torch.Tensor, copy: torch.Tensor) -> None:
    """The first copy of a line is the one that is shown."""
    if tally.times == 1:
        tally.memory = memory_of(Drawn("copied", source), Drawn("the copy", copy))


def _is_twin(source: torch.Tensor, copy: torch.Tensor) -> bool:
    """Whether the copy lies in memory as its source does: no other layout was wanted."""
    return source.stride() == copy.stride() and source.dtype == copy.dtype and source.device == copy.device


def _references_of_a_temporary() -> int:
    """The reference count of an argument that only the call holds, in a function like our wrapper."""
    seen: list[int] = []

    def probe(*args: Any, **kwargs: Any) -> None:
        seen.append(sys.getrefcount(args[0]))

    probe(object())
    return seen[0]
