"""Values that left their graph on the way to a loss."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensafe.facts import Certainty, Kind, Moment, StorageId
from tensafe.facts import Value as Fact
from tensafe.static.past import ancestors, history, reaches
from tensafe.static.values import LIKELY, TENSOR, Cut, Frame, Memory, Optimizer

if TYPE_CHECKING:
    from tensafe.static.machine import Machine


@dataclass(eq=False, slots=True)
class SecondOrder:
    """Gradients made with `create_graph=True`, and what became of them."""

    gradient: Memory
    frame: Frame
    cut: Cut | None = None
    live: bool = False


def backward(m: Machine, loss: Memory, node: ast.AST | None) -> None:
    """A backward starts at `loss`: what does it not reach?"""
    used(m, loss)
    if not loss.cuts:
        return
    reached = ancestors(loss)
    rebuilt = [cut for cut in loss.cuts if cut.rebuilt]
    for cut in rebuilt or loss.cuts:
        live = id(cut.source) in reached
        if cut.rebuilt:
            meant = live or (cut.moment.op == "torch.tensor" and _is_beside(m, cut, loss, reached))
            starved(m, cut, node, m.frame, Certainty.OFTEN_MEANT if meant else Certainty.MAY)
        elif loss.kind == "tensor" and (loss.leaf if loss.grad else not loss.leaf):
            starved(m, cut, node, m.frame, Certainty.MAY)
            return
        elif cut.scored and live:
            starved(m, cut, node, m.frame, Certainty.OFTEN_MEANT)


def _is_beside(m: Machine, cut: Cut, loss: Memory, reached: set[int]) -> bool:
    """Whether a rebuilt value is a weight or a target beside a loss that trains without it."""
    if loss.grad < LIKELY or loss.leaf:
        return False
    behind = [memory for memory in history(cut.source) if memory.grad >= LIKELY]
    if any(id(memory) in reached for memory in behind):
        return True
    leaves = [storage for memory in behind if memory.leaf for storage in memory.storages]
    trained = m.past.trained
    return bool(trained) and not any(
        m.past.is_within(leaf, storage) for leaf in leaves for storage in trained
    )


def stepped(m: Machine, optimizer: Optimizer, node: ast.AST) -> None:
    """An optimizer steps: did any backward since its last step reach one of its parameters?"""
    losses = m.backwards[min(optimizer.seen, len(m.backwards)) :]
    optimizer.seen = len(m.backwards)
    storages = optimizer.storages
    if not losses or not storages or any(_arrives(m, loss, storages) for loss in losses):
        return
    for loss in losses:
        for cut in loss.cuts:
            if cut.source.kind == TENSOR and _arrives(m, cut.source, storages):
                starved(m, cut, node, m.frame, Certainty.MAY)
                return


def _arrives(m: Machine, start: Memory, storages: tuple[int, ...]) -> bool:
    """Whether a backward from here gives one of these storages a gradient; yes when that cannot be told."""
    seen = {id(start)}
    stack = [start]
    while stack:
        memory = stack.pop()
        if memory.leaf and any(m.past.is_within(memory.storages[0], storage) for storage in storages):
            return True
        for parent in memory.parents:
            if id(parent) not in seen:
                seen.add(id(parent))
                stack.append(parent)
        if len(seen) > 4000:
            return True
    return False


def starved(m: Machine, cut: Cut, node: ast.AST | None, frame: Frame, certainty: Certainty) -> None:
    """Ask the rules about a cut whose parameters get no gradient."""
    storages = frozenset(map(StorageId, cut.source.storages))
    values = {"cut": Fact(storages, (cut.moment,)), "parameters": Fact(frozenset())}
    m.put(Kind.STARVED, "backward", node, frame, values, certainty=certainty)


def watch_gradients(m: Machine, gradient: Memory, node: ast.AST) -> None:
    """Gradients made with `create_graph=True` are meant to be differentiated again."""
    m.second_order.append(SecondOrder(gradient, m.frame))


def written_unrecorded(m: Machine, added: tuple[Memory, ...], moment: Moment) -> None:
    """A write that autograd does not record uses gradients that were to be differentiated again."""
    for one in m.second_order:
        if one.cut is None and any(reaches(memory, one.gradient) for memory in added):
            made = Moment(Kind.CUT, moment.op, moment.site, moment.order, note="written past autograd here")
            one.cut = Cut(made, one.gradient, rebuilt=True)


def used(m: Machine, value: Memory) -> None:
    """A recorded value is used: the gradients it was computed from are not lost."""
    for one in m.second_order:
        if not one.live and reaches(value, one.gradient):
            one.live = True


def finish(m: Machine) -> None:
    """At the end of a root: gradients that only unrecorded writes have used."""
    for one in m.second_order:
        if one.cut is not None and not one.live:
            starved(m, one.cut, None, one.frame, Certainty.MAY)
    m.second_order.clear()
