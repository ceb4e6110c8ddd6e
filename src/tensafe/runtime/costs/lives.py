"""What becomes of a copy: whether it or its source was written before it died."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tensafe.facts import Memory
from tensafe.runtime.places.frames import Place
from tensafe.runtime.storages.ledger import Ledger, clock, ledger_of_storage

MOST_LIVES = 50_000
REPLACED = "Tensor.data"  # `tensor.data = other` lets the memory go and writes nothing into it


@dataclass(slots=True)
class Tally:
    """All copies that one operation made at one line."""

    op: str
    place: Place
    times: int = 0
    nbytes: int = 0
    dead_nbytes: int = 0  # of those that died under our eyes
    needless_nbytes: int = 0  # of these, what neither side ever wrote
    fresh_nbytes: int = 0  # copied from a temporary that nobody else held
    same_nbytes: int = 0  # copied again from memory unwritten since the last time
    same_times: int = 0
    last_read: tuple[Any, ...] = ()  # the memory last copied, its last write then, and the part of it
    explicit: bool = True
    memory: tuple[Memory, ...] = ()  # of the first copy and its source

    @property
    def is_always_needless(self) -> bool:
        return self.needless_nbytes * 10 >= self.dead_nbytes * 9 and self.dead_nbytes * 2 >= self.nbytes


class Lives:
    """Weak references to the memory of copies; nothing is kept alive."""

    def __init__(self, failed: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
        self._living: dict[int, tuple[weakref.ref[Any], Tally, int, Ledger, Ledger, int]] = {}
        self._ended = failed(self._died)

    def begin(
        self, tally: Tally, source: torch.UntypedStorage, copy: torch.UntypedStorage, nbytes: int
    ) -> None:
        """A copy was made: see what becomes of it."""
        if len(self._living) >= MOST_LIVES:
            return
        key, ended = id(copy), self._ended
        ref = weakref.ref(copy, lambda ref: ended(key, ref))
        ledgers = ledger_of_storage(source), ledger_of_storage(copy)
        self._living[key] = (ref, tally, nbytes, *ledgers, next(clock))

    def _died(self, key: int, ref: Any) -> None:
        life = self._living.get(key)
        if life is None or life[0] is not ref:
            return
        del self._living[key]
        _, tally, nbytes, source, copy, order = life
        tally.dead_nbytes += nbytes
        if not _was_written(source, order) and not _was_written(copy, order):
            tally.needless_nbytes += nbytes

    def end(self) -> None:
        """The program is over: what is alive now was perhaps needed."""
        self._living.clear()


def _was_written(ledger: Ledger, order: int) -> bool:
    """Whether the memory was written after a moment, or could be, by an array over it.

    A bare address (`data_ptr()`) is mostly taken to compare it.
    """
    exported = ledger.exported is not None and not ledger.exported.op.endswith("data_ptr")
    if exported or ledger.benign:
        return True
    writes = [raw for raw in (ledger.first, ledger.raw) if raw is not None and raw[0] != REPLACED]
    return any(raw[3] > order for raw in writes)
