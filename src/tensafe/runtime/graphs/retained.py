"""Graphs that are kept after their backward: totals, averages, lists, buffers that hold every step's graph.

At a few moments all live tensors with a graph are looked at. Numbers of graph nodes tell in which step each
was made; a value whose graph reaches into step after step, or a list with a graph of each, is a suspect. It
is told at the end, if it grew and no backward ever went through it.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

import torch

from tensafe.facts import Call, Kind, Moment, Site, Value
from tensafe.runtime.places.frames import site_of
from tensafe.runtime.places.holders import Holder, grows, holders_of, prefer_growing, puts
from tensafe.runtime.refusals.trail import UNNUMBERED, is_numbered, next_number, number_of, trail
from tensafe.runtime.storages.ledger import LedgerHistory, clock, ledger_of
from tensafe.runtime.watcher import Context

MOST_BOUNDS = 8_192
MOST_NODES = 300
FEWEST_NODES = 4  # a single node on a leaf (`weight.clone()`) keeps nothing but what is kept anyway
FEWEST_STEPS = 3
FEWEST_STEPS_AT_ONCE = 5
MOST_ALIKE = 3
MOST_SUSPECTS = 8


Alike = tuple[str, torch.Size]
"""The node that made a tensor, and the tensor's shape."""


class Old(NamedTuple):
    """A tensor whose graph is older than the last step, and what a bounded walk behind it met."""

    tensor: weakref.ref[torch.Tensor]
    alike: Alike  # tensors of one list are made alike
    steps: frozenset[int]  # the past steps in which its graph was made
    nodes: int
    oldest: Any


@dataclass(slots=True)
class Suspect:
    """One line that keeps graphs: how many steps of them at the first and at the last look."""

    name: str
    site: Site
    made: Site | None
    first: int
    last: int = 0
    looks: int = 0
    derived: bool = False  # perhaps only computed anew from what another line keeps
    read: bool = False  # a backward went through what is kept


class Retained:
    """Numbers the steps by their backwards; `Looking` decides which are looked at."""

    def __init__(self, context: Context) -> None:
        self._ask = context.ask
        self._bounds: list[int] = []
        self._known: dict[tuple[bool, Alike], dict[Site, Suspect]] = {}

    def backward(self) -> None:
        """A backward ended that keeps no graph: a step is over."""
        bounds = self._bounds
        bounds.append(next_number())
        if len(bounds) > MOST_BOUNDS:
            del bounds[: MOST_BOUNDS // 2]

    def finish(self) -> None:
        """Report what grew and was never read; after one look alone, what is long."""
        suspects = [suspect for known in self._known.values() for suspect in known.values()]
        told: set[Site] = set()
        lists = any(known for (is_chain, _), known in self._known.items() if not is_chain)
        for suspect in suspects:
            grew = suspect.looks > 1 and suspect.last >= suspect.first + 2
            long = suspect.last >= (FEWEST_STEPS if grew else FEWEST_STEPS_AT_ONCE)
            derived = suspect.derived and lists
            if long and not suspect.read and not derived and suspect.site not in told:
                told.add(suspect.site)
                self._report(suspect)

    def _report(self, suspect: Suspect) -> None:
        kept = Moment(Kind.KEPT, "", suspect.site, 1)
        made = [Moment(Kind.MADE, "", suspect.made, 0)] if suspect.made is not None else []
        value = Value(frozenset(), (*made, kept), suspect.name)
        call = Call(Kind.RETAINED, "", suspect.site, next(clock), {"kept": value}, note=str(suspect.last))
        self._ask(call, LedgerHistory({}))

    def look(self, old: list[Old], frames: Sequence[FrameType]) -> None:
        """Values that hold the graphs of several steps, and values made alike in several steps."""
        chains: dict[Alike, list[Old]] = {}
        lists: dict[Alike, list[Old]] = {}
        for one in old:
            if len(one.steps) > 1:
                chains.setdefault(one.alike, []).append(one)
            if one.nodes >= FEWEST_NODES and max(one.steps) <= min(one.steps) + 1:
                lists.setdefault(one.alike, []).append(one)
        for alike, members in chains.items():
            self._suspect((True, alike), members, max(len(one.steps) for one in members), frames)
        for alike, members in lists.items():
            steps = len({min(one.steps) for one in members})
            if steps > 1:
                first = min(members, key=lambda one: min(one.steps))
                self._suspect((False, alike), [first], steps, frames)

    def old(self, tensors: Iterable[torch.Tensor]) -> list[Old]:
        """Those of the tensors whose graph reaches into a step before the last one."""
        if len(trail.threads) > 1:  # every thread numbers its own nodes
            return []
        nodes = [(tensor, node) for tensor in tensors if (node := _node(tensor)) is not None]
        found = (self._reach(tensor, node) for tensor, node in nodes)
        return [one for one in found if one is not None]

    def _reach(self, tensor: torch.Tensor, node: Any) -> Old | None:
        bounds = self._bounds
        steps: set[int] = set()
        oldest, seen, waiting = node, {node}, deque([node])
        while waiting and len(seen) < MOST_NODES:
            part = waiting.popleft()
            number = number_of(part)
            if number < UNNUMBERED:
                steps.add(bisect_right(bounds, number))
                oldest = part if number < number_of(oldest) else oldest
            for following, _index in part.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    waiting.append(following)
        steps.discard(len(bounds))
        if not steps or min(steps) >= len(bounds) - 1:
            return None
        alike = (node.name(), tensor.shape)
        return Old(weakref.ref(tensor), alike, frozenset(steps), len(seen), oldest)

    def _suspect(
        self, key: tuple[bool, Alike], members: list[Old], steps: int, frames: Sequence[FrameType]
    ) -> None:
        """Find the line that keeps these, and listen whether a backward ever reads what is kept.

        Finding it takes time: what was found for values made alike holds for later looks.
        """
        known = self._known.get(key)
        if known is None and len(self._known) < MOST_SUSPECTS:
            known = self._known[key] = {}
            for member in members[:MOST_ALIKE]:
                suspect = _new_suspect(member, steps, frames, is_chain=key[0])
                if suspect is not None:
                    known.setdefault(suspect.site, suspect)
        for suspect in known.values() if known else ():
            suspect.last = max(suspect.last, steps)
            suspect.looks += 1
            for member in members[:MOST_ALIKE]:
                _listen(member.oldest, suspect)


def _new_suspect(old: Old, steps: int, frames: Sequence[FrameType], is_chain: bool) -> Suspect | None:
    tensor = old.tensor()
    found = _keeping(tensor, frames) if tensor is not None else None
    if tensor is None or found is None:
        return None
    name, site, growing = found
    made = site_of(trail.place_behind(_node(tensor)))
    return Suspect(name, site, made, steps, derived=is_chain and not growing)


def _keeping(tensor: torch.Tensor, frames: Sequence[FrameType]) -> tuple[str, Site, bool] | None:
    """The name that keeps a tensor, the line that puts it there, and whether that line uses the old value."""
    holders = list(dict.fromkeys(_told(holders_of(tensor, frames))))
    for holder in sorted(holders, key=lambda holder: holder.inside):
        name = holder.name.name
        write = ledger_of(tensor).write
        site = site_of(write.place) if write is not None and not holder.inside else None
        if site is not None:
            return name, site, True
        put = prefer_growing(puts(holder, frames), name)
        if put is not None:
            return name, put.site, grows(put, name)
    return None


def _told(holders: Iterable[Holder]) -> Iterator[Holder]:
    for holder, _ in zip(holders, range(MOST_SUSPECTS), strict=False):
        yield holder


def _listen(node: Any, suspect: Suspect) -> None:
    def read(_gradients: Any) -> None:
        suspect.read = True

    if is_numbered(node):
        node.register_prehook(read)


def _node(tensor: torch.Tensor) -> Any:
    """The node that made a tensor; a view of something written in place may get a new one when asked."""
    try:
        if tensor.is_inference() or (tensor._is_view() and tensor._version):
            return None
        return tensor.grad_fn
    except RuntimeError:  # what is left of a `torch.func` transform
        return None
