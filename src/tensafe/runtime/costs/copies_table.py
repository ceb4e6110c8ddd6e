"""Every copy of a run by line, also those that are too many to follow by default: `tensafe run --copies`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.compiler import is_compiling
from torch.overrides import handle_torch_function, has_torch_function

from tensafe.facts import Call, History, Site
from tensafe.runtime.costs.copies_made import CopiesMade
from tensafe.runtime.costs.lives import Tally
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import site_of
from tensafe.runtime.watcher import Context

CONVERSIONS = ("to", "cpu", "cuda", "float", "double", "half", "bfloat16", "int", "long", "bool", "type")
INDEXED = ("__getitem__", "index_select", "gather", "masked_select", "take", "repeat", "tile")
JOINED = ("cat", "concat", "stack", "hstack", "vstack")
RESHAPING = ("reshape", "flatten", "ravel")
FUNCTIONS = (*RESHAPING, "index_select", "gather", "masked_select", "take")

Wrapped = Callable[..., Any]
Row = tuple[Tally, Site]


class CopiesTable:
    """Stands beside an engine, with patches of its own."""

    def __init__(self, guarded: Any, not_checked: Callable[[str, str], None]) -> None:
        self._guarded = guarded
        self._patches = Patches()
        self._copies = CopiesMade(Context(_ask_nobody, guarded, not_checked), smallest=1)

    def start(self) -> None:
        patches = self._patches
        self._copies.install(patches)
        patches.wrap(torch.Tensor, "copy_", self._written)
        for name in (*CONVERSIONS, *INDEXED, "ravel"):
            whole = name not in INDEXED
            patches.wrap(torch.Tensor, name, functools.partial(self._returned, f"Tensor.{name}", whole))
        for name in FUNCTIONS:
            patches.wrap(torch, name, functools.partial(self._returned, f"torch.{name}", name in RESHAPING))
        for name in JOINED:
            patches.wrap(torch, name, functools.partial(self._made, f"torch.{name}"))
        patches.wrap(torch, "tensor", functools.partial(self._made, "torch.tensor"))

    def stop(self) -> list[Row]:
        """The tallies with their sites, in the order of first sight."""
        self._patches.undo()
        self._copies.finish()
        return list(self._rows())

    def _rows(self) -> Iterator[Row]:
        for tally in self._copies.tallies.values():
            site = site_of(tally.place)
            if site is not None:
                yield tally, site

    def _returned(self, label: str, whole: bool, call: Wrapped) -> Wrapped:
        """A call that returns a copy, or a view where it can."""
        silently = self._guarded("a hidden copy", self._copies.copied_silently)

        def copying(*args: Any, **kwargs: Any) -> Any:
            if has_torch_function(args):
                return handle_torch_function(copying, args, *args, **kwargs)
            result = call(*args, **kwargs)
            if args and result is not args[0] and not is_compiling():
                silently(label, args[0], result, whole)
            return result

        return functools.update_wrapper(copying, call)

    def _made(self, label: str, call: Wrapped) -> Wrapped:
        made = self._guarded(label, self._copies.made)

        def making(*args: Any, **kwargs: Any) -> Any:
            if has_torch_function(args[0] if args and isinstance(args[0], list | tuple) else args):
                return handle_torch_function(making, args, *args, **kwargs)
            result = call(*args, **kwargs)
            if not is_compiling():
                made(label, result)
            return result

        return functools.update_wrapper(making, call)

    def _written(self, call: Wrapped) -> Wrapped:
        made = self._guarded("Tensor.copy_", self._copies.made)

        def copy_(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = call(self, *args, **kwargs)
            if not is_compiling():
                made("Tensor.copy_", self)
            return result

        return functools.update_wrapper(copy_, call)


def needed(tally: Tally) -> str:
    """Whether the run shows that the copies of a line had to be made."""
    if tally.same_nbytes * 2 >= tally.nbytes:
        return "again"
    if not tally.needless_nbytes:
        return "yes" if tally.dead_nbytes else ""
    return "no" if tally.needless_nbytes * 10 >= tally.nbytes * 9 else "partly"


def _ask_nobody(call: Call, history: History) -> None:
    """The table is no finding."""
