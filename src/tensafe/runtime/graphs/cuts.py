"""Graph cuts: where a value left its graph, and whether the parameters behind it ever got a gradient."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import torch

from tensafe.facts import Call, Certainty, Kind, Moment, Value
from tensafe.runtime.graphs import graph
from tensafe.runtime.places import flow, names
from tensafe.runtime.places.frames import Place, site_of, user_place
from tensafe.runtime.places.source import expressions_at, syntax_of
from tensafe.runtime.storages.ledger import LedgerHistory, clock
from tensafe.runtime.storages.weak import WeakFacts

if TYPE_CHECKING:
    from tensafe.runtime.engine import Ask

Node = tuple[str, int]
"""A graph node by name and sequence number: nothing is kept alive."""

LOOKS_A_SITE = 3
LOOKS_OFTEN = 50
MAKES_A_TENSOR = ("torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor", "torch.from_numpy")
EXPORTS = frozenset({"item", "numpy", "tolist"})
EXPECTED_NO_GRAPH = "does not require grad and does not have a grad_fn"


class Strength(IntEnum):
    """How much a cut says by itself."""

    EXPORTED = 0  # item(), numpy(): mostly for a log
    ALIASED = 1  # detach(), .data: often meant
    REBUILT = 2  # torch.tensor(values): a new tensor from graph values
    CERTAIN = 3  # nothing but a mistake, once parameters go without gradient


@dataclass(slots=True)
class Cut:
    """One cut at one line; `idle` are the leaves behind it that no backward has reached yet."""

    op: str
    place: Place
    order: int
    strength: Strength
    idle: list[weakref.ref[torch.Tensor]]
    source: Node | None = None  # that the cut value came from
    unless: tuple[Node, ...] = ()  # a backward through one of these makes the cut harmless
    note: str = ""
    label: str = ""
    backwards: int = 0
    starved: int = 0  # leaves that a backward had passed by, and that died without a gradient
    partly: bool = False  # a module that holds idle leaves has others that do train
    holders: list[Trained] = field(default_factory=list)
    told: bool = False

    @property
    def may_be_told(self) -> bool:
        """Whether it can still become a finding: then no gradient of its leaves may be overlooked."""
        return self.strength >= Strength.REBUILT or bool(self.holders)

    def look(self, reached: set[int]) -> list[torch.Tensor]:
        """The leaves that are still idle; those that got a gradient are dropped for good."""
        waiting, alive = [], []
        for ref in self.idle:
            leaf = ref()
            if leaf is None:
                self.starved += bool(self.backwards)
            elif id(leaf) not in reached and leaf.grad is None:
                waiting.append(ref)
                alive.append(leaf)
        self.idle = waiting
        return alive


@dataclass(slots=True, eq=False)
class Trained:
    """One optimizer: its parameters, and whether any of them ever had a gradient at a step."""

    parameters: set[int] = field(default_factory=set)
    steps: int = 0
    fed: bool = False


class Cuts:
    """All cuts of a run, a few a line, and what became of the parameters behind them."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._looks: dict[tuple[str, int, int], list[Cut]] = {}
        self._told: set[Place] = set()
        self._rebuilt: set[Place] = set()
        self._cuts: list[Cut] = []
        self._optimizers: WeakFacts[Trained] = WeakFacts()
        self._steps = 0
        self._last_backward = 0

    def cut(
        self,
        op: str,
        tensors: Sequence[torch.Tensor],
        strength: Strength,
        *,
        place: Place | None = None,
        leaves: Iterable[torch.Tensor] | None = None,
        note: str = "",
        unless: Iterable[Any] = (),
    ) -> None:
        """A value left its graph here; the first few times at each line the leaves behind it are noted."""
        place = place or user_place(4)
        if place is None or not torch.is_grad_enabled():
            return
        key = (op, id(place[0]), place[1])
        looks = self._looks.setdefault(key, [])
        if len(looks) >= LOOKS_A_SITE:
            looks[-1].order = next(clock)
            return
        if strength is Strength.EXPORTED and _feeds_a_new_tensor(place):
            strength = Strength.REBUILT
        behind = graph.leaves(tensors) if leaves is None else leaves
        source = None
        if strength is Strength.ALIASED and tensors[0].grad_fn is not None and not _is_exported(place):
            source = _node(tensors[0].grad_fn)
        idle = [weakref.ref(leaf) for leaf in behind if leaf.grad is None]
        nodes = tuple(_node(node) for node in unless)
        cut = Cut(op, place, next(clock), strength, idle, source, nodes, note)
        looks.append(cut)
        self._cuts.append(cut)

    def rebuilt(self, place: Place | None) -> None:
        """A tensor is made of a number: numbers that went into it were taken for more than a log."""
        if place is None or place in self._rebuilt or not torch.is_grad_enabled():
            return
        self._rebuilt.add(place)
        for cut in self._cuts:
            if (
                cut.strength is Strength.EXPORTED
                and cut.place[0] is place[0]
                and flow.feeds(cut.place, place)
            ):
                cut.strength = Strength.REBUILT

    def backward(
        self, roots: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], place: Place | None
    ) -> None:
        """A backward ended: whatever it reached is not starved."""
        self._last_backward = next(clock)
        if not self._cuts:
            return
        reached = {id(leaf) for leaf in inputs}
        waiting = [cut for cut in self._cuts if cut.source is not None or (cut.unless and cut.idle)]
        if waiting:
            self._look_for_live_sources(waiting, roots, place)
        for cut in self._cuts:
            if not cut.idle:
                continue
            if cut.may_be_told or cut.backwards < LOOKS_OFTEN:
                idle = cut.look(reached)
                rebuilt = cut.strength is Strength.REBUILT and not self._steps and not cut.partly
                if idle and rebuilt and cut.backwards < LOOKS_A_SITE:
                    cut.partly = names.has_trained_sibling(idle)
                    cut.label = names.label(idle)
            cut.backwards += 1

    def _look_for_live_sources(
        self, waiting: list[Cut], roots: Sequence[torch.Tensor], place: Place | None
    ) -> None:
        sources = {cut.source: cut for cut in waiting if cut.source is not None}
        harmless = {node: cut for cut in waiting for node in cut.unless}
        for cut in waiting:
            cut.source = None
        for node in map(_node, graph.nodes(root.grad_fn for root in roots)):
            if node in harmless:
                harmless[node].idle = []
            found = sources.get(node)
            if found is not None and not found.told:
                found.told = True
                self._report(found, "", Certainty.OFTEN_MEANT, place)

    def refused(self, error: RuntimeError, place: Place | None) -> None:
        """A backward was refused, its root having no graph: the latest, strongest cut feeding it is why."""
        if EXPECTED_NO_GRAPH not in str(error):
            return
        recent = [cut for cut in self._cuts if cut.order > self._last_backward]
        cut = max(recent, key=lambda cut: (cut.strength, cut.order), default=None)
        if cut is not None and not cut.told and place is not None and flow.feeds(cut.place, place):
            cut.told = True
            certainty = Certainty.DID if cut.strength is Strength.REBUILT else Certainty.MAY
            cut.note = cut.note or "most likely the graph ends here"
            self._report(cut, names.label(cut.look(set())), certainty, place)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to step: look which of its parameters have a gradient."""
        self._steps += 1
        trained = self._optimizers.get(optimizer)
        if trained is None:
            trained = Trained()
            self._optimizers.put(optimizer, trained)
        trained.steps += 1
        if trained.fed and not any(cut.idle for cut in self._cuts):
            return
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        if len(parameters) != len(trained.parameters):
            trained.parameters = {id(parameter) for parameter in parameters}
        if not trained.fed:
            trained.fed = any(parameter.grad is not None for parameter in parameters)
        if trained.steps < LOOKS_OFTEN or any(cut.holders for cut in self._cuts):
            self._hold(trained)

    def _hold(self, trained: Trained) -> None:
        for cut in self._cuts:
            held = [leaf for leaf in cut.look(set()) if id(leaf) in trained.parameters] if cut.idle else []
            if held and cut.backwards and trained not in cut.holders:
                cut.holders.append(trained)
                cut.label = names.label(held)

    def stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer stepped; a closure may have made the gradients meanwhile."""
        trained = self._optimizers.get(optimizer)
        if trained is not None and not trained.fed:
            groups = optimizer.param_groups
            trained.fed = any(parameter.grad is not None for group in groups for parameter in group["params"])

    def forget(self, tensor: torch.Tensor) -> None:
        """Hold no weak reference to this tensor any more."""
        for cut in self._cuts:
            cut.idle = [ref for ref in cut.idle if ref() is not tensor]

    def finish(self) -> None:
        """The program ended: report the cuts behind which parameters starved from first to last."""
        for cut in sorted(self._cuts, key=lambda cut: -cut.strength):
            idle = cut.look(set()) if cut.idle else []
            if cut.told or cut.place in self._told or not cut.backwards or not (idle or cut.starved):
                continue
            certainty = self._certainty(cut)
            if certainty is not None:
                self._report(cut, cut.label or names.label(idle), certainty, None)

    def _certainty(self, cut: Cut) -> Certainty | None:
        if cut.strength is Strength.CERTAIN:
            return Certainty.DID
        if any(not trained.fed for trained in cut.holders) and cut.strength is not Strength.EXPORTED:
            return Certainty.DID
        if cut.strength is Strength.REBUILT:
            starved = bool(cut.holders or cut.partly) and flow.may_reach_backward(cut.place)
            return Certainty.DID if starved else None
        return Certainty.OFTEN_MEANT if cut.holders and cut.strength is Strength.ALIASED else None

    def _report(self, cut: Cut, idle: str, certainty: Certainty, place: Place | None) -> None:
        self._told.add(cut.place)
        moment = Moment(Kind.CUT, cut.op, site_of(cut.place), cut.order, note=cut.note)
        roles = {"cut": Value(frozenset(), (moment,)), "parameters": Value(frozenset(), label=idle)}
        call = Call(Kind.STARVED, "backward", site_of(place), next(clock), roles, certainty)
        self._ask(call, LedgerHistory({}))


def _feeds_a_new_tensor(place: Place) -> bool:
    """Whether the number taken here goes straight into `torch.tensor(...)` or the like."""
    syntax = syntax_of(place[0].co_filename)
    for node in expressions_at(place):
        parent = syntax.parents.get(node) if syntax else None
        while isinstance(parent, ast.expr | ast.comprehension) and syntax is not None:
            if isinstance(parent, ast.Call) and ast.unparse(parent.func) in MAKES_A_TENSOR:
                return True
            parent = syntax.parents.get(parent)
    return False


def _is_exported(place: Place) -> bool:
    """Whether the alias made here becomes an array or a number at once: `x.detach().cpu().numpy()`."""
    syntax = syntax_of(place[0].co_filename)
    for node in expressions_at(place):
        parent = syntax.parents.get(node) if syntax else None
        while isinstance(parent, ast.Attribute | ast.Call) and syntax is not None:
            if isinstance(parent, ast.Attribute) and parent.attr in EXPORTS:
                return True
            parent = syntax.parents.get(parent)
    return False


def _node(node: Any) -> Node:
    return node.name(), node._sequence_nr()


def graph_tensors(data: Any, depth: int = 3) -> list[torch.Tensor]:
    """The tensors with a graph inside nested lists and tuples, as `torch.tensor` would copy them."""
    if isinstance(data, torch.Tensor):
        return [data] if type(data) is torch.Tensor and data.grad_fn is not None else []
    if depth and isinstance(data, list | tuple) and data and isinstance(data[0], torch.Tensor | list | tuple):
        return [tensor for item in data for tensor in graph_tensors(item, depth - 1)]
    return []
