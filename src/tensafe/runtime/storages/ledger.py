"""What the hot path keeps of each storage: its last write and its exports, as integers and code objects."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from tensafe.facts import Kind, Moment, Reached, StorageId
from tensafe.runtime.places.frames import Place, site_of

if TYPE_CHECKING:
    import torch

clock = itertools.count(1)
"""Numbers everything that happens, so that two moments can be ordered."""

_ids = itertools.count(1)
_KEY = "_tensafe_ledger"


class Write(NamedTuple):
    """One write: by which operation, at which instruction, when, and through which tensor object."""

    op: str
    code: CodeType | None
    offset: int
    order: int
    tensor: int

    @property
    def place(self) -> Place | None:
        return (self.code, self.offset) if self.code is not None else None


RawWrite = tuple[str, CodeType | None, int, int, int]
"""The fields of a `Write`, as the hot path makes them."""


OnWrite = Callable[["torch.Tensor", RawWrite], None]
"""Hears of a write: the tensor through which it went, and the write."""


def _order(write: Write) -> int:
    return write.order


class Event(NamedTuple):
    """Anything else worth a line: an export, a kept reference."""

    op: str
    places: tuple[Place, ...]
    order: int

    def moment(self, kind: Kind, note: str = "") -> Moment:
        return Moment(kind, self.op, site_of(self.places[0]) if self.places else None, self.order, note=note)


class Ledger:
    """The past of one storage; lives on the storage's own Python object and dies with it."""

    # Most storages of a program get a ledger and few ever fill it: what is empty stays with the class.
    raw: RawWrite | None = None  # the last write
    first: RawWrite | None = None  # the first write since a backward's tensor was saved
    reshaped: RawWrite | None = None  # the last call that changed a tensor in place, but no bytes
    generation = 0  # moves when the storage starts a new copy-on-write life
    lazy = True  # whether a copy-on-write clone of it can be made
    benign = False  # kernels write it behind the counter by design: running statistics
    exported: Event | None = None  # the last array or pointer handed out
    older = False  # than the watching: it was there at its start
    watch: OnWrite | None = None  # who wants to hear of every write from now on
    reached: tuple[tuple[int, Reached], ...] = ()  # by the first writes of each line, with their order
    under: Any = None  # what was saved under the program's own hooks: clones, weakly by their tokens
    _id: StorageId | None = None

    @property
    def id(self) -> StorageId:
        """A number of this storage alone, given when it is first asked for."""
        if self._id is None:
            self._id = StorageId(next(_ids))
        return self._id

    @property
    def write(self) -> Write | None:
        return Write(*self.raw) if self.raw is not None else None

    def write_since(self, order: int, *, bytes_changed: bool) -> Write | None:
        """The write that spoilt what was saved at `order`: the first after it, else the last that is known.

        Where the bytes changed, calls that only change sizes and strides (`t_`, `unsqueeze_`) are not meant.
        """
        known = [self.first, self.raw] if bytes_changed else [self.first, self.raw, self.reshaped]
        writes = [Write(*raw) for raw in known if raw is not None]
        return min((write for write in writes if write.order > order), key=_order, default=None)


def ledger_of(tensor: torch.Tensor) -> Ledger:
    """The ledger of a tensor's storage; raises what `untyped_storage()` raises for tensors that have none."""
    return ledger_of_storage(tensor.untyped_storage())


def ledger_of_storage(storage: torch.UntypedStorage) -> Ledger:
    """The ledger of a storage, made on first use."""
    own: dict[str, Any] = storage.__dict__
    ledger: Ledger | None = own.get(_KEY)
    if ledger is None:
        ledger = own[_KEY] = Ledger()
    return ledger


def write_moment(write: Write | None, order: int, counted: bool) -> Moment:
    """The fact of a write; one that no wrapped call made has neither operation nor site."""
    if write is None:
        return Moment(Kind.WRITTEN, "", None, order, counted)
    return Moment(Kind.WRITTEN, write.op, site_of(write.place), max(write.order, order), counted)


class LedgerHistory:
    """The `History` that a rule sees at one moment: the writes that bear on the call."""

    def __init__(self, writes: dict[StorageId, Moment]) -> None:
        self._writes = writes

    def last_write(self, storages: frozenset[StorageId], since: Moment) -> Moment | None:
        hits = [
            write
            for storage, write in self._writes.items()
            if storage in storages and write.order > since.order
        ]
        return max(hits, key=lambda write: write.order, default=None)
