"""Gradients that a backward gives to an optimizer's parameters and that are always zeroed before its step."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from tensafe.facts import Call, Kind, Moment, Value
from tensafe.runtime import modes
from tensafe.runtime.graphs.upstream import boundary
from tensafe.runtime.patches import Patches
from tensafe.runtime.places import names
from tensafe.runtime.places.frames import Place, site_of, user_frame
from tensafe.runtime.refusals.trail import trail
from tensafe.runtime.storages.ledger import LedgerHistory, clock, ledger_of
from tensafe.runtime.storages.weak import WeakFacts
from tensafe.runtime.watcher import Context

FEWEST = 3
MOST_PLACES = 64
MOST_OPTIMIZERS = 256


@dataclass(slots=True)
class Fate:
    """What became of the gradients that the backwards of one line gave to one optimizer."""

    used: int = 0
    discarded: int = 0
    looked: bool = False
    at: Any = None  # the site at which a `detach()` would keep them away
    label: str = ""


@dataclass(slots=True)
class Group:
    """One optimizer: two of its parameters as samples, and the lines whose gradients lie in it now."""

    samples: list[weakref.ref[torch.Tensor]] = field(default_factory=list)
    last: list[tuple[Any, int]] = field(default_factory=list)
    filled_by: set[Place] = field(default_factory=set)
    fates: dict[Place, Fate] = field(default_factory=dict)

    def is_zeroed(self) -> bool:
        """Whether the gradients of all samples are gone or were set to zero by the last write."""
        parameters = [parameter for ref in self.samples if (parameter := ref()) is not None]
        return all(parameter.grad is None or _is_zeroed(parameter.grad) for parameter in parameters)

    def state(self) -> list[tuple[Any, int]]:
        """The gradients of the samples, by weak reference and version."""
        found: list[tuple[Any, int]] = []
        for ref in self.samples:
            parameter = ref()
            gradient = parameter.grad if parameter is not None else None
            found.append((None, 0) if gradient is None else (weakref.ref(gradient), gradient._version))
        return found


class Discards:
    """Samples the gradients of every optimizer after each backward."""

    def __init__(self, context: Context) -> None:
        self._ask = context.ask
        self._guarded = context.guarded
        self._groups: WeakFacts[Group] = WeakFacts()
        self._fates: list[dict[Place, Fate]] = []  # of optimizers that are gone, too
        self._threads: set[int] = set()

    def install(self, patches: Patches) -> None:
        patches.wrap(torch.optim.Optimizer, "zero_grad", self._zero)
        patches.wrap(torch.nn.Module, "zero_grad", self._zero)

    def _is_threaded(self) -> bool:
        """Whether a second thread has trained: its backward may replace, without the GIL, what we read."""
        self._threads.add(threading.get_ident())
        if len(self._threads | trail.threads) < 2:
            return False
        for _, group in self._groups.items():
            group.samples, group.last = [], []
            group.filled_by.clear()
        return True

    def _zero(self, call: Callable[..., Any]) -> Callable[..., Any]:
        zeroed = self._guarded("zeroed gradients", self._zeroed)

        def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = call(self, *args, **kwargs)
            zeroed()
            return result

        return functools.update_wrapper(zero_grad, call)

    def _zeroed(self) -> None:
        if modes.asked() or self._is_threaded():
            return
        for _, group in self._groups.items():
            if group.filled_by and group.is_zeroed():
                self._dropped(group)
            group.last = group.state()

    def _dropped(self, group: Group) -> None:
        for place in group.filled_by:
            group.fates[place].discarded += 1
        group.filled_by.clear()

    def backward(self, roots: list[torch.Tensor], retained: bool, place: Place | None) -> None:
        filled = []
        if self._is_threaded():
            return
        for optimizer, group in self._groups.items():
            state = group.state()
            pairs = list(zip(state, group.last, strict=False))
            if all(new[0] is old[0] and new[1] == old[1] for new, old in pairs):
                continue
            if any(new[0] is not None and old[0] is not None and new[0] is not old[0] for new, old in pairs):
                self._dropped(group)  # `p.grad = None` and a new gradient since
            group.last = state
            if len(group.fates) < MOST_PLACES:
                filled.append((optimizer, group))
        if place is None or retained:
            return
        for optimizer, group in filled:
            group.filled_by.add(place)
            fate = group.fates.setdefault(place, Fate())
            if not fate.looked and fate.discarded >= FEWEST - 1 and not fate.used:
                fate.looked = True
                others = [other for other, its in filled if its is not group and _uses(its, place)]
                self._look(fate, roots, optimizer, others)

    def _look(self, fate: Fate, roots: list[torch.Tensor], optimizer: Any, others: list[Any]) -> None:
        found = boundary(roots, _parameters(optimizer), [p for other in others for p in _parameters(other)])
        if found is not None:
            fate.at = found.site(user_frame(2))
            fate.label = names.label(found.leaves)

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        if self._is_threaded():
            return
        group = self._groups.get(optimizer)
        if group is None:
            group = Group()
            self._groups.put(optimizer, group)
            if len(self._fates) < MOST_OPTIMIZERS:
                self._fates.append(group.fates)
        for place in group.filled_by:
            group.fates[place].used += 1
        group.filled_by.clear()
        if modes.asked():
            return
        if not group.samples:
            parameters = [p for p in _parameters(optimizer) if p.requires_grad]
            group.samples = [weakref.ref(p) for p in [*parameters[:1], *parameters[1:][-1:]]]
        group.last = group.state()

    def forget(self, tensor: torch.Tensor) -> None:
        for _, group in self._groups.items():
            if any(ref() is tensor for ref in group.samples) or any(
                ref is not None and ref() is tensor for ref, _ in group.last
            ):
                group.samples, group.last = [], []
                group.filled_by.clear()

    def finish(self) -> None:
        for fates in self._fates:
            for place, fate in fates.items():
                if fate.at is not None and fate.discarded >= FEWEST and not fate.used:
                    self._report(place, fate)

    def _report(self, place: Place, fate: Fate) -> None:
        value = Value(frozenset(), (Moment(Kind.MADE, "", fate.at, 0),), fate.label)
        call = Call(Kind.LEAKED, "", site_of(place), next(clock), {"leak": value}, note="discarded")
        self._ask(call, LedgerHistory({}))


def _is_zeroed(gradient: torch.Tensor) -> bool:
    write = ledger_of(gradient).write if gradient.layout is torch.strided else None
    return write is not None and write.op.endswith("zero_")


def _parameters(optimizer: Any) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _uses(group: Group, place: Place) -> bool:
    fate = group.fates.get(place)
    return fate is not None and fate.used > 0
