"""What is known of one refusal: the error, its frames, and the facts that a diagnosis makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from tensafe.facts import Call, Certainty, Kind, Memory, Moment, Site, Value
from tensafe.runtime.places.frames import Place, site_of
from tensafe.runtime.refusals.frames import Trace
from tensafe.runtime.storages.ledger import Ledger, clock, ledger_of


@dataclass(frozen=True)
class Seen:
    """A raised error with its frames, and what the running engine kept that may explain it."""

    text: str
    error: BaseException
    trace: Trace
    hook_places: Callable[[], Sequence[Place]]  # where full backward hooks were put on
    hook_place: Callable[[object], Place | None]  # where this forward pre-hook was put on

    def ledger(self, tensor: torch.Tensor | None) -> Ledger | None:
        if tensor is None or tensor.layout is not torch.strided:
            return None
        try:
            return ledger_of(tensor)
        except (NotImplementedError, RuntimeError):
            return None


class Refusal(NamedTuple):
    """The facts: which refusal, by which operation, where, and of what, with what led there in its trail.

    `operand` is the expression that the refused call took, where it stands in the source.
    """

    note: str
    op: str
    site: Site | None
    target: Value
    operand: Site | None = None
    memory: tuple[Memory, ...] = ()

    def call(self, certainty: Certainty) -> Call:
        values = {"target": self.target}
        if self.operand is not None:
            values["operand"] = value_of("", [Moment(Kind.MADE, "", self.operand, 0)])
        return Call(Kind.REFUSED, self.op, self.site, next(clock), values, certainty, self.note, self.memory)


def value_of(label: str, trail: Sequence[Moment]) -> Value:
    """A value with a past; the storages do not matter to a refusal."""
    return Value(frozenset(), tuple(trail), label=label)


def made(site: Site | None, op: str = "") -> Moment | None:
    """The fact that a tensor was made."""
    return Moment(Kind.MADE, op, site, 0) if site is not None else None


def made_at_place(place: Place | None, op: str = "") -> Moment | None:
    return made(site_of(place), op)
