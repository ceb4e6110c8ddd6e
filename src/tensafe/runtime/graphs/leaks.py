"""Gradients that flow where they are thrown away: into a critic, a target, an idle generator."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch

from tensafe.facts import Call, Certainty, Kind, Moment, Site, Value
from tensafe.runtime import modes
from tensafe.runtime.graphs.discards import Discards
from tensafe.runtime.graphs.leak_patterns import Leak, leaks
from tensafe.runtime.patches import Patches
from tensafe.runtime.places import names
from tensafe.runtime.places.frames import Place, site_of
from tensafe.runtime.refusals.frames import statement_at
from tensafe.runtime.refusals.origins import binding, site_in
from tensafe.runtime.refusals.trail import is_numbered, number_of, trail
from tensafe.runtime.storages.ledger import LedgerHistory, clock
from tensafe.runtime.watcher import Context, Watcher

LOOKS = 2  # backwards of each line that are looked at
MOST_PLACES = 1_000
MOST_NODES = 60
REINFORCED = re.compile(r"gamma|discount|\bdones?\b|terminal|not_done|bootstrap", re.IGNORECASE)


class Leaks(Watcher):
    """Looks at the first backwards of each line, and follows whose gradients are zeroed unused."""

    def __init__(self, context: Context) -> None:
        self._ask = context.ask
        self._looks: dict[Place | None, int] = {}
        self._told: set[Site] = set()
        self._discards = Discards(context)

    def install(self, patches: Patches) -> None:
        self._discards.install(patches)

    def backward(self, roots: list[torch.Tensor], retained: bool, place: Place | None) -> None:
        if modes.asked():
            return
        self._discards.backward(roots, retained, place)
        looks = self._looks.get(place, 0)
        if looks >= LOOKS or len(self._looks) >= MOST_PLACES:
            return
        self._looks[place] = looks + 1
        for leak in leaks(roots):
            self._found(leak, place)

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._discards.before_step(optimizer)

    def forget(self, tensor: torch.Tensor) -> None:
        self._discards.forget(tensor)

    def finish(self) -> None:
        self._discards.finish()

    def _found(self, leak: Leak, place: Place | None) -> None:
        made = _place_below(leak.value)
        at = site_of(_place_of(leak.at))
        certainty = Certainty.DID
        if leak.kind == "target":
            if not leak.sure and not (made is not None and _speaks_of_rewards(made)):
                certainty = Certainty.OFTEN_MEANT
            at = site_of(made) or at
        elif leak.kind == "reference values" and made is not None:
            at = _estimate(made)
        if at is None or at in self._told:
            return
        self._told.add(at)
        value = Value(frozenset(), (Moment(Kind.MADE, "", at, 0),), names.label(leak.leaves))
        site = site_of(place)
        roles = {"leak": value}
        self._ask(Call(Kind.LEAKED, "", site, next(clock), roles, certainty, leak.kind), LedgerHistory({}))


def _place_of(node: Any) -> Place | None:
    return trail.place_of(number_of(node)) if is_numbered(node) else None


def _place_below(node: Any) -> Place | None:
    """The line of the nearest node at or below this one that has one, breadth first."""
    waiting, seen = [node], {node}
    for part in waiting:
        place = _place_of(part)
        if place is not None:
            return place
        for following, _index in part.next_functions:
            if following is not None and following not in seen and len(seen) < MOST_NODES:
                seen.add(following)
                waiting.append(following)
    return None


def _speaks_of_rewards(place: Place) -> bool:
    statement = statement_at(place)
    return statement is not None and bool(REINFORCED.search(ast.unparse(statement)))


def _estimate(place: Place) -> Site | None:
    """The call of the network whose result the statement at a place uses: there the graph begins."""
    statement = statement_at(place)
    for part in ast.walk(statement) if statement is not None else ():
        if isinstance(part, ast.Name):
            put = binding(place, part.id)
            if put is not None and put.value is not None and _calls(put.value):
                return site_in(put.filename, put.node)
    return site_of(place)


def _calls(value: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(value))
