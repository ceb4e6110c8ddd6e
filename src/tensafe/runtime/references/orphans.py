"""Optimizers that step parameters which no model has any more."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.compiler import is_compiling

from tensafe.facts import Kind, Moment
from tensafe.runtime.places import names
from tensafe.runtime.places.frames import Place, site_of, user_place
from tensafe.runtime.refusals.trail import trail
from tensafe.runtime.storages.ledger import clock
from tensafe.runtime.storages.weak import WeakFacts

MOST_LOOKS = 2


class Registered(NamedTuple):
    """Where and when a module got a parameter."""

    place: Place
    order: int


class Orphans:
    """Looks at an optimizer's first steps: parameters without gradient that no living module holds."""

    def __init__(self, registered: WeakFacts[list[Registered]], report: Callable[..., None]) -> None:
        self._registered = registered
        self._report = report
        self._created: WeakFacts[Registered] = WeakFacts()
        self._looks: WeakFacts[int] = WeakFacts()
        self._assigned: WeakFacts[Registered] = WeakFacts()

    def creation(self, guarded: Callable[..., Any]) -> Callable[..., Any]:
        def put(optimizer: Any, place: Place | None) -> None:
            if place is not None:
                self._created.put(optimizer, Registered(place, next(clock)))

        remember = guarded("Optimizer.__init__", put)

        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def init(self: Any, *args: Any, **kwargs: Any) -> None:
                call(self, *args, **kwargs)
                if not is_compiling():
                    remember(self, user_place(2))

            return functools.update_wrapper(init, call)

        return wrap

    def assigned(self, module: torch.nn.Module, place: Place | None) -> None:
        """`module.load_state_dict(..., assign=True)` gave the module other parameters."""
        if place is not None:
            for _, tensor in names.named_tensors(module):
                self._assigned.put(tensor, Registered(place, next(clock)))

    def forget(self, tensor: torch.Tensor) -> None:
        self._assigned.forget(tensor)

    def stepped(self, optimizer: torch.optim.Optimizer, place: Place | None) -> None:
        created = self._created.get(optimizer)
        looks = self._looks.get(optimizer) or 0
        if created is None or looks >= MOST_LOOKS or len(trail.threads) > 1:
            return  # another thread's backward may replace, without the GIL, the gradients that we would read
        self._looks.put(optimizer, looks + 1)
        without = [p for group in optimizer.param_groups for p in group["params"] if p.grad is None]
        if not without:
            return
        living = {id(p): p for module in names._modules() for p in _own(module)}
        orphans = [p for p in without if id(p) not in living]
        if not orphans:
            return
        stepped = {
            id(p)
            for other, _ in self._created.items()
            for group in other.param_groups
            for p in group["params"]
        }
        left_out = [p for key, p in living.items() if p.grad is not None and key not in stepped]
        if not _stand_for(left_out, orphans):
            return
        self._looks.put(optimizer, MOST_LOOKS)
        self._tell(created, left_out, place)

    def _tell(self, created: Registered, left_out: list[torch.Tensor], place: Place | None) -> None:
        step = Moment(Kind.STEPPED, "Optimizer.step", site_of(place), next(clock))
        replaced = self._replaced(left_out, created.order)
        if replaced is not None:
            made = Moment(Kind.KEPT, "", site_of(created.place), created.order)
            self._report(
                site_of(replaced.place), "Optimizer.step", "replaced", (made, step), names.label(left_out)
            )
        else:
            self._report(site_of(created.place), "Optimizer.step", "orphans", (step,), names.label(left_out))

    def _replaced(self, left_out: list[torch.Tensor], since: int) -> Registered | None:
        """The line that gave the module the parameters that are now trained by nobody."""
        for tensor in left_out:
            known = [*(self._registered.get(tensor.untyped_storage()) or [])]
            assigned = self._assigned.get(tensor)
            for one in [assigned, *known] if assigned is not None else known:
                if one.order > since:
                    return one
        return None


def _own(module: torch.nn.Module) -> list[torch.Tensor]:
    own = vars(module).get("_parameters", {})
    return [p for p in own.values() if type(p) is torch.nn.Parameter]


def _stand_for(left_out: list[torch.Tensor], orphans: list[torch.Tensor]) -> bool:
    """Whether the untrained parameters are plainly the successors of those that the optimizer holds."""
    if not left_out:
        return False
    shapes = {tuple(p.shape) for p in left_out}
    if all(tuple(p.shape) in shapes for p in orphans):
        return True
    return [p.dim() for p in orphans] == [p.dim() for p in left_out]
