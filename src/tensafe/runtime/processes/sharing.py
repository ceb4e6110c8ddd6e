"""Memory shared with other processes: kept too long, filled where nobody sees it, overwritten too early."""

from __future__ import annotations

import functools
import multiprocessing.queues
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.multiprocessing.reductions
import torch.utils.data
from torch.compiler import is_compiling

from tensafe.facts import Call, Certainty, Kind, Memory, Moment, Site, Value
from tensafe.runtime import modes
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import Place, site_of, user_place
from tensafe.runtime.places.variables import held, stored
from tensafe.runtime.processes.dataset_caches import find_cache, plain_state, reads_changed
from tensafe.runtime.processes.received import Received, find_keeper, most_open_files
from tensafe.runtime.storages.ledger import LedgerHistory, clock, ledger_of
from tensafe.runtime.storages.pictures import Drawn, memory_of, written_by
from tensafe.runtime.storages.weak import WeakFacts
from tensafe.runtime.watcher import Context, Watcher

LARGE = 1_000_000
"""Dead bytes from which sharing the whole of a slice's storage is worth a word."""


class ProcessSharing(Watcher):
    """Counts what comes from workers, and looks at what is given to them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._received = Received()
        self._loaded: WeakFacts[dict[str, Any]] = WeakFacts()  # by dataset: its state at the first pass
        self._loaders: WeakFacts[Place | None] = WeakFacts()
        self._sent: WeakFacts[tuple[Place, int]] = WeakFacts()  # by storage
        self._told: set[Place] = set()

    def install(self, patches: Patches) -> None:
        for name in ("rebuild_storage_fd",):
            patches.wrap(torch.multiprocessing.reductions, name, self._receiver)
        patches.wrap(torch.utils.data.DataLoader, "__iter__", self._iterating)
        patches.wrap(torch.Tensor, "share_memory_", self._sharing)
        for owner in (multiprocessing.queues.Queue, multiprocessing.queues.SimpleQueue):
            patches.wrap(owner, "put", functools.partial(self._sender, f"{owner.__name__}.put"))

    # --- tensors that workers send hold a file descriptor each

    def _receiver(self, call: Callable[..., Any]) -> Callable[..., Any]:
        count = self._context.guarded("a tensor from a worker", self._count)

        def rebuild(*args: Any, **kwargs: Any) -> Any:
            storage = call(*args, **kwargs)
            count(storage)
            return storage

        return functools.update_wrapper(rebuild, call)

    def _count(self, storage: Any) -> None:
        if isinstance(storage, torch.storage.TypedStorage):
            storage = storage._untyped_storage
        self._received.add(storage)
        if not self._received.is_due(most_open_files() // 2):
            return
        keeper = find_keeper(self._received)
        if keeper is None or keeper.place in self._told:
            return
        self._told.add(keeper.place)
        received = Moment(Kind.SHARED, "", keeper.received, next(clock), note="received")
        drawn = memory_of(Drawn("received, and kept", keeper.tensor))
        self._report(keeper.kept, "", "kept", (received,), Certainty.MAY, str(len(self._received)), drawn)

    # --- what a worker writes into its own copy of the dataset

    def _iterating(self, call: Callable[..., Any]) -> Callable[..., Any]:
        look = self._context.guarded("DataLoader.__iter__", self._look_at_dataset)

        def iterate(self: Any) -> Any:
            if not is_compiling() and self.num_workers > 0:
                look(self, user_place(2))
            return call(self)

        return functools.update_wrapper(iterate, call)

    def _look_at_dataset(self, loader: Any, place: Place | None) -> None:
        for dataset in _datasets(loader.dataset):
            before = self._loaded.get(dataset)
            if before is None:
                self._loaded.put(dataset, plain_state(dataset))
            elif loader.persistent_workers and loader._iterator is not None:
                self._look_for_change(dataset, before, place)
            else:
                self._look_for_cache(dataset, place)

    def _look_for_cache(self, dataset: Any, place: Place | None) -> None:
        cache = find_cache(dataset)
        if cache is None or cache.place in self._told:
            return
        self._told.add(cache.place)
        trail = [Moment(Kind.MADE, "", cache.made, next(clock))] if cache.made is not None else []
        again = Moment(Kind.SHARED, "", site_of(place), next(clock), note="again")
        certainty, label = Certainty.DID if cache.is_empty else Certainty.MAY, f"self.{cache.name}"
        drawn = memory_of(Drawn("of this process alone", stored(dataset)[cache.name], label))
        self._report(cache.filled, "", "cache", (*trail, again), certainty, label, drawn)

    def _look_for_change(self, dataset: Any, before: dict[str, Any], place: Place | None) -> None:
        """Workers that stay alive have the dataset as it was when they started."""
        found = reads_changed(dataset, before)
        if found is None or found.place in self._told:
            return
        self._told.add(found.place)
        again = Moment(Kind.SHARED, "", site_of(place), next(clock), note="again")
        read = Moment(Kind.COPIED, "", found.made, next(clock))
        self._report(found.filled, "", "state", (again, read), Certainty.DID, f"self.{found.name}")

    # --- what is sent and written again

    def _sender(self, label: str, call: Callable[..., Any]) -> Callable[..., Any]:
        look = self._context.guarded(label, self._sending)

        def put(self: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
            look(label, obj, user_place(2))
            return call(self, obj, *args, **kwargs)

        return functools.update_wrapper(put, call)

    def _sending(self, label: str, obj: Any, place: Place | None) -> None:
        if place is None or place in self._told or modes.asked():
            return
        items = [obj] if isinstance(obj, torch.Tensor) else [item for _, item in held(obj, 32)]
        for tensor in items:
            if type(tensor) not in PLAIN or tensor.device.type != "cpu":
                continue
            storage = tensor.untyped_storage()
            before, write = self._sent.get(storage), ledger_of(tensor).write
            if before is None:
                if not storage.is_shared():
                    self._sent.put(storage, (place, next(clock)))
            elif before[0] == place and write is not None and write.order > before[1] and write.place:
                self._told.add(place)
                sent = Moment(Kind.SHARED, label, site_of(place), next(clock), note="sent")
                drawn = memory_of(Drawn("sent", tensor), also=written_by(write, ledger_of(tensor)))
                self._report(site_of(write.place), write.op, "resent", (sent,), Certainty.MAY, "", drawn)

    def _sharing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        look = self._context.guarded("Tensor.share_memory_", self._look_at_slice)

        def share_memory_(self: Any) -> Any:
            if type(self) in PLAIN and not is_compiling():
                look(self, user_place(2))
            return call(self)

        return functools.update_wrapper(share_memory_, call)

    def _look_at_slice(self, tensor: torch.Tensor, place: Place | None) -> None:
        if tensor.layout is not torch.strided or place is None or place in self._told:
            return
        own, whole = tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes()
        if whole - own >= LARGE and whole >= 4 * own and not tensor.untyped_storage().is_shared():
            self._told.add(place)
            note = f"{whole:,} bytes for {own:,}"
            meant, drawn = Certainty.OFTEN_MEANT, memory_of(Drawn("shared", tensor))
            self._report(site_of(place), "Tensor.share_memory_", "slice", (), meant, note, drawn)

    def _report(
        self,
        site: Site | None,
        op: str,
        note: str,
        trail: tuple[Moment, ...],
        certainty: Certainty = Certainty.DID,
        label: str = "",
        memory: tuple[Memory, ...] = (),
    ) -> None:
        if site is None:
            return
        roles = {"shared": Value(frozenset(), trail, label)}
        call = Call(Kind.SHARED, op, site, next(clock), roles, certainty, note, memory)
        self._context.ask(call, LedgerHistory({}))


def _datasets(dataset: Any) -> Iterator[Any]:
    """A dataset and those inside it: of a `Subset`, of a `ConcatDataset`."""
    try:
        weakref.ref(dataset)
    except TypeError:
        return
    yield dataset
    own = getattr(dataset, "__dict__", {})
    if "dataset" in own:
        yield from _datasets(own["dataset"])
    for item in own.get("datasets", ()) if isinstance(own.get("datasets"), list) else ():
        yield from _datasets(item)
