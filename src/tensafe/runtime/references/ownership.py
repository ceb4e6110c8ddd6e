"""Live references: who keeps the model's own tensors as if they were a copy, and when that shows."""

from __future__ import annotations

import ast
import contextlib
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from tensafe.facts import Call, Certainty, Kind, Moment, Site, StorageId, Value
from tensafe.runtime.places import names
from tensafe.runtime.places.frames import Place, site_of, user_places
from tensafe.runtime.places.source import expressions_at, site_of_node, syntax_of
from tensafe.runtime.references.states import shared_state, state_storages
from tensafe.runtime.storages.ledger import LedgerHistory, clock, ledger_of, write_moment
from tensafe.runtime.storages.pictures import Drawn, memory_of
from tensafe.runtime.storages.weak import WeakFacts

if TYPE_CHECKING:
    from tensafe.runtime.engine import Ask

MOST_SITES = 1_000
BOOLEAN = ("equal", "allclose")


@dataclass(slots=True)
class Kept:
    """A live reference: made by which call, where and when, the version counter it then had.

    `touched` says that `.data` of the reference itself was taken: a write through `.data` may be meant.
    `owner` is the tensor of which the reference is an alias.
    """

    op: str
    place: Place
    order: int
    version: int
    touched: bool = False
    owner: int = 0


@dataclass(slots=True)
class Pending:
    """A line that compared a parameter with itself: a finding, if it never compares anything else."""

    op: str
    kept: Kept
    written: Moment
    parameter: weakref.ref[torch.Tensor]
    spoiled: bool = False


class Ownership:
    """Remembers live references weakly and asks the rules when one is used as a copy."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._kept: WeakFacts[Kept] = WeakFacts()
        self.kept_entries = self._kept.entries
        self._lists: dict[Place, tuple[WeakFacts[int], str]] = {}
        self._moves: WeakFacts[dict[Place, tuple[int, str]]] = WeakFacts()
        self._optimizers: WeakFacts[bool] = WeakFacts()
        self._adopted: list[tuple[WeakFacts[None], WeakFacts[None], Kept]] = []
        self._told: set[Place] = set()
        self.always_same: dict[Place, Pending] = {}

    # --- moments that make a live reference

    def keep(self, op: str, tensors: Iterable[Any], place: Place | None, owner: int = 0) -> None:
        """These tensors are the live ones, handed out by `op` at `place`."""
        if place is None:
            return
        order = next(clock)
        for tensor in tensors:
            if isinstance(tensor, torch.Tensor) and not isinstance(tensor, torch.nn.Parameter):
                version = -1 if tensor.is_inference() else tensor._version
                with contextlib.suppress(NotImplementedError, RuntimeError):
                    ledger_of(tensor)  # so that an optimizer's writes are entered from now on
                self._kept.put(tensor, Kept(op, place, order, version, owner=owner))

    def listed(self, module: torch.nn.Module, op: str, place: Place | None) -> None:
        """`module.parameters()` was called here; whether a list of it is kept is looked up only on demand."""
        if place is None or len(self._lists) >= MOST_SITES:
            return
        entry = self._lists.get(place)
        if entry is None:
            entry = self._lists[place] = (WeakFacts(), op)
        entry[0].put(module, next(clock))

    def moved(self, module: torch.nn.Module, op: str, place: Place | None) -> None:
        """`module.to(...)` returned the module itself."""
        if place is None:
            return
        places = self._moves.get(module)
        if places is None:
            places = {}
            self._moves.put(module, places)
        places.setdefault(place, (next(clock), op))

    def state_given(self, optimizer: torch.optim.Optimizer) -> None:
        """`optimizer.state_dict()` handed out its live state."""
        self._optimizers.put(optimizer, True)

    def state_taken(self, optimizer: torch.optim.Optimizer, place: Place | None) -> None:
        """`optimizer.load_state_dict(...)` ended: note every other optimizer whose memory it now holds."""
        if place is None:
            return
        own = set(state_storages(optimizer))
        for giver, _ in self._optimizers.items():
            if giver is not optimizer and own & set(state_storages(giver)):
                first: WeakFacts[None] = WeakFacts()
                second: WeakFacts[None] = WeakFacts()
                first.put(giver, None)
                second.put(optimizer, None)
                kept = Kept("Optimizer.state_dict", place, next(clock), 0)
                self._adopted.append((first, second, kept))

    # --- moments that use one

    def restoring(self, module: torch.nn.Module, state: Mapping[str, Any], place: Place | None) -> None:
        """`module.load_state_dict(state)` begins: is `state` the module's own memory, written since?"""
        own: dict[str, torch.Tensor] | None = None
        found: tuple[Kept, Moment, tuple[Drawn, ...]] | None = None
        for name, source in state.items():
            if not isinstance(source, torch.Tensor):
                continue
            kept = self._kept.get(source)
            if kept is None or kept.place in self._told:
                return
            if own is None:
                own = dict(names.named_tensors(module))
            target = own.get(name)
            if target is None or not _same_storage(source, target):
                return  # the author put something else there: the restore does change the module
            written = _write_since(kept, source, target) if found is None else None
            if written is not None:
                found = kept, written, (Drawn("kept", source, name), Drawn("live", target, name))
        if found is not None:
            self._report(Kind.RESTORED, "Module.load_state_dict", *found, place)

    def restored(self, state: Mapping[str, Any]) -> None:
        """`load_state_dict(state)` ended: what it copied onto itself is no write by somebody else."""
        for source in state.values():
            kept = self._kept.get(source) if isinstance(source, torch.Tensor) else None
            if kept is not None:
                kept.order = next(clock)

    def touched(self, reference: torch.Tensor) -> None:
        """`.data` of this tensor was taken."""
        kept = self._kept.get(reference)
        if kept is not None:
            kept.touched = True

    def compared(self, op: str, left: torch.Tensor, right: torch.Tensor, place: Place | None) -> None:
        """Two tensors over the same elements were compared or subtracted."""
        if left is right:
            if not op.endswith(BOOLEAN):  # an equality test of one object with itself asks whether it is one
                self._compared_with_itself(op, left, place)
            return
        for kept_tensor, live in ((right, left), (left, right)):
            kept = self._kept.get(kept_tensor)
            if kept is not None and kept.place not in self._told and self._kept.get(live) != kept:
                written = _write_since(kept, kept_tensor, live)
                if written is not None and _is_stored(kept.place):
                    certainty = Certainty.OFTEN_MEANT if op.endswith(BOOLEAN) else Certainty.DID
                    parts = (Drawn("kept", kept_tensor), Drawn("live", live))
                    self._report(Kind.COMPARED, op, kept, written, parts, place, certainty)
                    return

    def differed(self, place: Place | None) -> None:
        """Two different tensors were compared here: comparing one with itself is not all this line does."""
        if place in self.always_same:
            self.always_same[place].spoiled = True

    def _compared_with_itself(self, op: str, parameter: torch.Tensor, place: Place | None) -> None:
        if not isinstance(parameter, torch.nn.Parameter) or place is None:
            return
        if place in self.always_same or not _names_two_things(place):
            return
        write = ledger_of(parameter).write
        if write is None:
            return
        for at, (modules, source) in self._lists.items():
            for module, order in modules.items():
                if (
                    order < write.order
                    and at not in self._told
                    and _list_site(at)
                    and _holds(module, parameter)
                ):
                    kept = Kept(source, at, order, 0)
                    written = write_moment(write, 0, True)
                    self.always_same[place] = Pending(op, kept, written, weakref.ref(parameter))
                    return

    def forget(self, tensor: torch.Tensor) -> None:
        """Hold no weak reference to this tensor any more."""
        self._kept.forget(tensor)
        for place in [at for at, pending in self.always_same.items() if pending.parameter() is tensor]:
            del self.always_same[place]

    def finish(self) -> None:
        """The program ended: report the lines that never compared anything but a parameter with itself."""
        for place, pending in self.always_same.items():
            if not pending.spoiled and pending.kept.place not in self._told:
                parameter = pending.parameter()
                parts = (Drawn("kept, and live", parameter),) if parameter is not None else ()
                self._report(Kind.COMPARED, pending.op, pending.kept, pending.written, parts, place)

    def stepped(self, optimizer: torch.optim.Optimizer, place: Place | None) -> None:
        """An optimizer wrote its parameters and its state."""
        for entry in list(self._adopted):
            giver, taker, kept = entry
            if any(owner is optimizer for owner, _ in giver.items()):
                for other, _ in taker.items():
                    parts = shared_state(optimizer, other)
                    if parts:
                        callers = [
                            Moment(Kind.STEPPED, "", site_of(at), kept.order - 1) for at in user_places(3, 3)
                        ]
                        self._step_report(kept, place, Certainty.DID, tuple(callers[:0:-1]), parts)
                self._adopted.remove(entry)
        if self._moves.entries:
            self._look_for_twins(optimizer, place)

    def _look_for_twins(self, optimizer: torch.optim.Optimizer, place: Place | None) -> None:
        trained = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        for module, places in self._moves.items():
            own = names.named_tensors(module) if len(places) > 1 else ()
            written = next(((name, tensor) for name, tensor in own if id(tensor) in trained), None)
            if written is None:
                continue
            parts = (Drawn("written, and held by both", written[1], written[0]),)
            bindings = [
                (at, order, op, binding) for at, (order, op) in places.items() if (binding := _binding(at))
            ]
            places.clear()
            for at, order, op, binding in bindings[1:]:
                first = bindings[0]
                if binding.call == first[3].call and binding.target != first[3].target:
                    other = Moment(Kind.VIEWED, op, site_of(first[0]), first[1])
                    self._step_report(Kept(op, at, order, 0), place, Certainty.MAY, (other,), parts)

    # --- asking

    def _report(
        self,
        kind: Kind,
        op: str,
        kept: Kept,
        written: Moment,
        parts: tuple[Drawn, ...],
        place: Place | None,
        certainty: Certainty = Certainty.DID,
    ) -> None:
        self._told.add(kept.place)
        storage = ledger_of(parts[0].tensor).id if parts else StorageId(0)
        site = _list_site(kept.place) or site_of(kept.place)
        value = Value(frozenset({storage}), (Moment(Kind.KEPT, kept.op, site, kept.order),))
        memory = memory_of(*parts)
        call = Call(kind, op, site_of(place), next(clock), {"kept": value}, certainty, memory=memory)
        self._ask(call, LedgerHistory({storage: written}))

    def _step_report(
        self,
        kept: Kept,
        place: Place | None,
        certainty: Certainty,
        before: tuple[Moment, ...],
        parts: tuple[Drawn, ...],
    ) -> None:
        if kept.place in self._told:
            return
        self._told.add(kept.place)
        storage = StorageId(0)
        written = Moment(Kind.STEPPED, "Optimizer.step", site_of(place), next(clock))
        value = Value(
            frozenset({storage}), (*before, Moment(Kind.KEPT, kept.op, site_of(kept.place), kept.order))
        )
        site, memory = site_of(place), memory_of(*parts)
        call = Call(Kind.STEPPED, written.op, site, next(clock), {"kept": value}, certainty, memory=memory)
        self._ask(call, LedgerHistory({storage: written}))


def _write_since(kept: Kept, reference: torch.Tensor, live: torch.Tensor) -> Moment | None:
    """The write to the live tensor since; writes through the reference itself are meant."""
    write = ledger_of(live).write
    if write is not None and write.order > kept.order:
        if write.tensor in (id(live), kept.owner) or (not kept.touched and _goes_through_data(write.place)):
            return write_moment(write, 0, True)
        return None
    moved = not live.is_inference() and kept.version not in (-1, reference._version)
    return write_moment(None, next(clock), True) if moved and write is None else None


def _goes_through_data(place: Place | None) -> bool:
    """Whether the target of the write at a place is reached through `.data`."""
    for node in expressions_at(place) if place is not None else ():
        part: ast.AST = node
        while isinstance(part, ast.Call | ast.Attribute | ast.Subscript):
            if isinstance(part, ast.Attribute) and part.attr == "data":
                return True
            part = part.func if isinstance(part, ast.Call) else part.value
    return False


def _names_two_things(place: Place) -> bool:
    """Whether the comparison at a place is spelled with two different operands: `x - x` means itself."""
    for node in expressions_at(place):
        if isinstance(node, ast.BinOp):
            return ast.dump(node.left) != ast.dump(node.right)
        if isinstance(node, ast.Call) and len(node.args) >= 2:
            return ast.dump(node.args[0]) != ast.dump(node.args[1])
        if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute):
            return ast.dump(node.func.value) != ast.dump(node.args[0])
    return True


def _same_storage(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.layout is not torch.strided or other.layout is not torch.strided:
        return False
    return one.untyped_storage() is other.untyped_storage()


def _holds(module: torch.nn.Module, parameter: torch.Tensor) -> bool:
    return any(own is parameter for _, own in names.named_tensors(module))


def _list_site(place: Place) -> Site | None:
    """The list, dict or comprehension, bound to a name, that keeps the result of the call at `place`."""
    syntax = syntax_of(place[0].co_filename)
    for node in expressions_at(place):
        parent = syntax.parents.get(node) if syntax else None
        if isinstance(parent, ast.comprehension) and syntax is not None:
            parent = syntax.parents.get(parent)
        if isinstance(parent, ast.expr) and syntax is not None and _keeps_elements(parent):
            statement = syntax.statement(parent)
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is parent:
                return site_of_node(place, parent)
    return None


def _keeps_elements(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple", "dict")
    if isinstance(node, ast.ListComp):
        return isinstance(node.elt, ast.Name)
    return isinstance(node, ast.DictComp) and isinstance(node.value, ast.Name)


def _is_stored(place: Place) -> bool:
    """Whether the reference made at `place` outlives its statement: it is bound or returned."""
    syntax = syntax_of(place[0].co_filename)
    nodes = expressions_at(place)
    if syntax is None or not nodes:
        return False
    return isinstance(syntax.statement(nodes[0]), ast.Assign | ast.AnnAssign | ast.Return)


@dataclass(frozen=True, slots=True)
class Binding:
    """`target = module.to(...)` in source form."""

    target: str
    call: str


def _binding(place: Place) -> Binding | None:
    syntax = syntax_of(place[0].co_filename)
    for node in expressions_at(place):
        statement = syntax.statement(node) if syntax else None
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(statement, ast.Assign)
            and statement.value is node
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Attribute)  # two local names may well mean one module
        ):
            return Binding(ast.unparse(statement.targets[0]), ast.unparse(node))
    return None
