"""Parameters that a program steps though none of its backwards ever reaches them, because of one cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensafe.facts import Certainty
from tensafe.static import cuts
from tensafe.static.past import history
from tensafe.static.values import TENSOR, YES, Cut, Memory, Optimizer

if TYPE_CHECKING:
    from tensafe.static.machine import Machine


def stepped(m: Machine, optimizer: Optimizer) -> None:
    """An optimizer of the program steps."""
    if m.graphs.from_top and optimizer not in m.graphs.optimizers:
        m.graphs.optimizers.append(optimizer)


def finish(m: Machine) -> None:
    """At the end of the program's own statements, when all of its backwards are known."""
    if not m.graphs.from_top or not m.graphs.optimizers:
        return
    found = list(dict.fromkeys(cut for loss in m.backwards for cut in loss.cuts))
    if not found or any(cut.rebuilt for cut in found):
        return  # a rebuilt value is told at its backward
    reached = {storage for loss in m.backwards for storage in _leaves(history(loss))}
    for cut in found:
        if _starves(m, cut, reached):
            cuts.starved(m, cut, None, m.frame, Certainty.MAY)


def _starves(m: Machine, cut: Cut, reached: set[int]) -> bool:
    """Whether some optimizer steps what lies behind the cut, and nothing else gives that a gradient."""
    source = cut.source
    if source.grad != YES or source.kind != TENSOR or source.joined:
        return False
    behind = _leaves(history(source))
    trained = [storage for one in m.graphs.optimizers for storage in one.storages]
    stepped_ = {leaf for leaf in behind if any(m.past.is_within(leaf, storage) for storage in trained)}
    return bool(stepped_) and not behind & reached


def _leaves(memories: list[Memory]) -> set[int]:
    return {memory.storages[0] for memory in memories if memory.leaf and memory.grad == YES}
