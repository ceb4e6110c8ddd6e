"""Several listeners on the writes into one storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensafe.runtime.storages.ledger import Ledger, OnWrite, RawWrite

if TYPE_CHECKING:
    import torch

MOST = 16


class Listeners:
    """What stands in `ledger.watch` when more than one wants to hear."""

    __slots__ = ("all",)

    def __init__(self, first: OnWrite | None) -> None:
        self.all: list[OnWrite] = [] if first is None else [first]

    def __call__(self, tensor: torch.Tensor, raw: RawWrite) -> None:
        for listener in tuple(self.all):
            listener(tensor, raw)


def listen(ledger: Ledger, listener: OnWrite) -> None:
    """Call back on every later wrapped write into this storage; the listener may hold no tensor of it."""
    watch = ledger.watch
    if not isinstance(watch, Listeners):
        watch = ledger.watch = Listeners(watch)
    if listener not in watch.all and len(watch.all) < MOST:
        watch.all.append(listener)


def deafen(ledger: Ledger, listener: OnWrite) -> None:
    """Take a listener back."""
    watch = ledger.watch
    if isinstance(watch, Listeners) and listener in watch.all:
        watch.all.remove(listener)
        if not watch.all:
            ledger.watch = None
