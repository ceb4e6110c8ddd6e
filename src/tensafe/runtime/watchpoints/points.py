"""Watchpoints: who writes into this memory, at the writing line."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from tensafe.facts import Site
from tensafe.memory.from_torch import parts_of
from tensafe.memory.overlap import meet
from tensafe.memory.part import Part
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import Place, site_of, user_place
from tensafe.runtime.scripted import finding_originals
from tensafe.runtime.watchpoints.alias import through
from tensafe.runtime.watchpoints.layer import Layer
from tensafe.runtime.watchpoints.region import KEY, OnWrite, Region, WriteSeen

PARTIAL = frozenset(
    f"Tensor.{name}_"
    for name in (
        *("index_fill", "index_copy", "index_add", "index_put", "index_reduce", "masked_fill"),
        *("masked_scatter", "scatter", "scatter_add", "scatter_reduce", "put", "fill_diagonal"),
        *("_index_put_impl", "map", "map2"),
    )
)
"""Methods that may write only some elements of their target."""

REPLACES = frozenset({"Tensor.data", "Tensor.set_"})

UNSEEN = "a write that is no torch call of the program changed it"


class _OfThread(threading.local):
    inside = False  # a call that writes runs, which may be made of others
    telling = False  # a callback runs
    wrote = False  # and wrote into watched memory itself


class Watchpoints:
    """All watched regions of the process; the wrappers are in place while there is one."""

    def __init__(self) -> None:
        self._regions: list[Region] = []
        self._patches = Patches()
        self._step_hook: Any = None
        self._own = _OfThread()

    def add(self, name: str, owner: Any, part: Part, on_write: OnWrite) -> Region:
        """Watch one piece of memory."""
        with _unseen():
            region = Region(name, owner, part, on_write)
        self._attach(region, part)
        self._regions.append(region)
        if len(self._regions) == 1:
            self._install()
        return region

    def _attach(self, region: Region, part: Part) -> None:
        if isinstance(part.storage, torch.UntypedStorage):
            part.storage.__dict__.setdefault(KEY, []).append(region)
        life = part.storage if region.storage() is not None else region.owner()
        weakref.finalize(life, _drop, self, weakref.ref(region)).atexit = False

    def _detach(self, region: Region) -> None:
        storage = region.storage()
        if isinstance(storage, torch.UntypedStorage):
            on_storage = storage.__dict__.get(KEY, [])
            if region in on_storage:
                on_storage.remove(region)
            if not on_storage:
                storage.__dict__.pop(KEY, None)

    def remove(self, region: Region) -> None:
        """Watch it no more; the last one takes the wrappers out."""
        if region not in self._regions:
            return
        self._regions.remove(region)
        self._detach(region)
        if not self._regions:
            self._uninstall()

    def compare(self, regions: list[Region] | None = None, note: str = "") -> None:
        """Tell of every change that no wrapped call made; the place is where it is noticed."""
        place = None
        for region in list(self._regions if regions is None else regions):
            with _unseen():
                changed = region.is_compared and region.differs()
                if changed:
                    region.take_snapshot()
            if changed:
                place = place or user_place(2)
                site = site_of(place)
                self._tell(region, WriteSeen(region.name, "", site, "", note or _noticed(region.last)))
                region.last = site

    def _install(self) -> None:
        Layer(self.around, self._is_any_exposed).install(self._patches)
        self._patches.wrap(torch.autograd, "backward", self._backward)
        self._patches.wrap(torch.utils, "swap_tensors", self._swap)
        self._patches.wrap(torch.jit._builtins, "_find_builtin", finding_originals)
        self._step_hook = register_optimizer_step_post_hook(lambda *_: self.compare())

    def _uninstall(self) -> None:
        self._patches.undo()
        self._step_hook.remove()

    def _backward(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **kwargs: Any) -> Any:
            self.compare()
            result = call(*args, **kwargs)
            self.compare(note="backward wrote it")
            return result

        return functools.update_wrapper(backward, call)

    def _swap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`swap_tensors` refuses tensors with weak references: ours are dropped first."""

        def swap_tensors(one: Any, other: Any) -> Any:
            for region in self._regions:
                held = (region.owner(), region.root())
                if any(tensor is known for tensor in (one, other) for known in held):
                    region.owner = region.root = _nobody
            return call(one, other)

        return functools.update_wrapper(swap_tensors, call)

    def _is_any_exposed(self) -> bool:
        return any(region.is_exposed for region in self._regions)

    def around(
        self,
        label: str,
        call: Callable[..., Any],
        targets: tuple[Any, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Make a call that writes `targets`, and tell of the watched regions that it wrote."""
        own = self._own
        if own.telling or own.inside:
            own.wrote = True
            return call(*args, **kwargs)
        met: list[tuple[Region, Any, bool]] = []
        with _guarded(), _unseen():
            met = [hit for target in targets for hit in self._met(label, target, args)]
        if met:
            self.compare([region for region, _, _ in met])
        held = [region.storage() for region, _, _ in met]  # until a tensor that gets other memory is followed
        own.inside = True
        try:
            result = call(*args, **kwargs)
        finally:
            own.inside = False
        if met:
            place = user_place(2)
            for region, target, certain in met:
                self._written(region, label, target, certain, place)
        del held
        return result

    def _met(self, label: str, target: Any, args: tuple[Any, ...]) -> Iterator[tuple[Region, Any, bool]]:
        """The regions that a write to this target reaches, and whether it surely does."""
        if isinstance(target, torch.UntypedStorage):
            regions = target.__dict__.get(KEY, ())
            yield from ((region, target, label != "UntypedStorage.__setitem__") for region in regions)
            return
        written, certain = target, label not in PARTIAL
        if label == "Tensor.__setitem__" and len(args) > 1:
            written, certain = _indexed(target, args[1])
        for part in parts_of(written):
            for region in self._candidates(part):
                extent = part.extent
                if region.storage() is not part.storage:
                    if region.address is None or part.address is None:
                        continue
                    extent = extent.moved(part.address - region.address)
                if meet(extent, region.extent) is not None:
                    yield region, target, certain

    def _candidates(self, part: Part) -> list[Region]:
        own = part.storage.__dict__.get(KEY, ())
        if part.storage.resizable():
            return list(own)
        return [region for region in self._regions if region in own or region.is_exposed]

    def _written(self, region: Region, label: str, target: Any, certain: bool, place: Place | None) -> None:
        way, note = "", ""
        with _guarded(), _unseen():
            if not certain and region.is_compared and not region.differs():
                return
            way = through(target, region, label, place)
            if label in REPLACES and target is region.owner():
                note = "it has other memory now"
                self._follow(region, target)
            region.take_snapshot()
        region.last = site_of(place)
        self._tell(region, WriteSeen(region.name, label, region.last, way, note))

    def _follow(self, region: Region, owner: torch.Tensor) -> None:
        """The watched tensor has other memory now: watch that."""
        (part,) = parts_of(owner)
        self._detach(region)
        region.move(part)
        self._attach(region, part)

    def _tell(self, region: Region, seen: WriteSeen) -> None:
        self._own.telling, self._own.wrote = True, False
        try:
            region.on_write(seen)
        finally:
            self._own.telling = False
            if self._own.wrote:
                with _guarded(), _unseen():
                    for other in self._regions:
                        other.take_snapshot()


def _drop(points: Watchpoints, region: weakref.ref[Region]) -> None:
    watched = region()
    if watched is not None and watched.storage() is None:  # not one that moved on to other memory
        points.remove(watched)


def _noticed(last: Site | None) -> str:
    return UNSEEN + (f" after line {last.line}" if last is not None else "")


def _indexed(target: torch.Tensor, index: Any) -> tuple[Any, bool]:
    """What `target[index] = ...` writes, and whether it surely does: a view where the index gives one."""
    items = index if isinstance(index, tuple) else (index,)
    basic = all(item is None or item is Ellipsis or type(item) in (int, slice) for item in items)
    return (torch._C.TensorBase.__getitem__(target, index), True) if basic else (target, False)


def _nobody() -> None:
    return None


@contextlib.contextmanager
def _guarded() -> Iterator[None]:
    """A failure of ours is said, and the program goes on."""
    try:
        yield
    except Exception as error:
        print(f"tensafe: a watchpoint failed ({type(error).__name__}: {error})", file=sys.stderr)


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    """No mode of the program sees what happens inside."""
    with torch.no_grad(), torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        yield


points = Watchpoints()
"""The one of this process."""
