"""Graphs whose backward is done: gone through again, or kept from step to step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensafe.facts import Kind, Moment, StorageId
from tensafe.facts import Value as Fact
from tensafe.static.graphs.known import here, made_of, moment_of
from tensafe.static.past import ancestors, compatible
from tensafe.static.values import ARRAY, LIKELY, THING, YES, Frame, Made, Memory, Path, Sequence, Value

if TYPE_CHECKING:
    from tensafe.static.arguments import Arguments
    from tensafe.static.machine import Machine

MOST_NODES = 400
MOST_KEPT = 40
BOUNDED = "bounded"  # the kind of a list that drops its oldest items
_LOSS = re.compile(r"loss|\berr|nll|elbo|objective", re.IGNORECASE)
# Layers of which nothing is recorded, but whose backward frees what it has used.
_FREED_LAYERS = frozenset({"LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell", "MultiheadAttention"})


@dataclass(eq=False, slots=True)
class Ended:
    """A value whose backward is done: which, when, and whether that freed something a second one needs."""

    value: Memory
    order: int
    at: Made
    path: Path
    freed: bool
    started: bool  # the backward started here


@dataclass(eq=False, slots=True)
class Kept:
    """A value that takes finished graphs along to the next step."""

    value: Memory
    at: Made
    label: str
    carried: Memory | None = None  # what of an earlier step is in it


@dataclass(eq=False, slots=True)
class Loop:
    """A loop at work: when it began, and when its present round did."""

    began: int
    round_began: int
    newest: int = 0  # storage at the beginning
    newest_of_round: int = 0


class Finished:
    """The graphs of one root whose backward is done."""

    def __init__(self) -> None:
        self.ended: dict[int, Ended] = {}  # by the id of the value, which is kept alive here
        self.kept: list[Kept] = []
        self.on_self: list[Kept] = []  # what methods add to their own attributes, finished or not
        self.loops: list[Loop] = []
        self.guards: set[object] = set()  # the arms that go on where the other arm leaves
        self.asked: set[int] = set()

    def begin(self) -> None:
        self.ended.clear()
        self.kept.clear()
        self.on_self.clear()
        self.loops.clear()
        self.guards.clear()
        self.asked.clear()


def left(m: Machine, after: int, until: int) -> None:
    """The way on which these backwards were done leaves: they are not in the past of what follows."""
    ended = m.finished.ended
    for key in [key for key, one in ended.items() if after < one.order <= until]:
        del ended[key]


@contextmanager
def rounds_of(m: Machine) -> Iterator[Loop]:
    """Around a loop; each of its rounds is to be told by `next_round`."""
    now = m.past.tick()
    loop = Loop(now, now, m.past.newest, m.past.newest)
    m.finished.loops.append(loop)
    try:
        yield loop
    finally:
        m.finished.loops.remove(loop)


def next_round(m: Machine, loop: Loop) -> None:
    loop.round_began, loop.newest_of_round = m.past.tick(), m.past.newest


# --- backward


def is_loss(losses: list[Memory], node: ast.Call) -> None:
    """Something of which only the name is known has a graph, as a backward starts there."""
    func = node.func
    for one in losses:
        if one.grad < LIKELY and one.kind == THING and isinstance(func, ast.Attribute):
            starts = node.args[:1] or [func.value]
            if any(_LOSS.search(ast.unparse(start)) for start in starts):
                one.grad = LIKELY
                if isinstance(starts[0], ast.Call) and len(one.parents) and one.made is None:
                    one.parents[0].grad = max(one.parents[0].grad, LIKELY)  # `scaler.scale(loss)`


def backward(m: Machine, loss: Memory, given: Arguments, node: ast.Call) -> None:
    """A backward starts at `loss`: does it meet what an earlier one has freed?"""
    finished = m.finished
    reached = _certain(loss)
    if finished.ended:
        again = next((one for one in reached if _is_freed(m, one)), None)
        if again is not None and not m.graphs.refusal_expected:
            _ask_second(m, finished.ended[id(again)], node)
        behind = ancestors(loss)
        finished.kept = [
            kept for kept in finished.kept if id(kept.value) not in behind and id(kept.carried) not in behind
        ]
    if "inputs" in given.keywords or _may_retain(given):
        return
    freed = {id(save.output) for saves in m.past.saves.values() for save in saves}
    order = m.past.tick()
    for one in reached:
        if one.leaf or id(one) in finished.ended:
            continue
        frees = id(one) in freed or (one.made is not None and one.made[0] in _FREED_LAYERS)
        finished.ended[id(one)] = Ended(one, order, here(m, "backward", node), m.path, frees, one is loss)


def _may_retain(given: Arguments) -> bool:
    return any(
        given.get(place, name) is not None and given.flag(name, place) is not False
        for place, name in ((1, "retain_graph"), (2, "create_graph"))
    )


def _certain(start: Memory) -> list[Memory]:
    """The values that a backward from `start` certainly passes through, nearest first."""
    found, seen = [start], {id(start)}
    if start.kind == THING and start.made is None and start.parents and start.parents[0].grad >= LIKELY:
        found.append(start.parents[0])  # `scaler.scale(loss)`
    for memory in found:
        if memory.joined or (memory is not start and memory.leaf):
            continue
        for parent in memory.parents if len(found) < MOST_NODES else ():
            if parent.grad == YES and id(parent) not in seen:
                seen.add(id(parent))
                found.append(parent)
    return found


def _is_freed(m: Machine, memory: Memory) -> bool:
    ended = m.finished.ended.get(id(memory))
    if ended is None or not ended.freed:
        return False
    return all(_holds(m, one) for one in ended.path)


def _holds(m: Machine, one: tuple[object, int]) -> bool:
    """Whether a decision of an earlier round is the same in this one: a plain name may have changed."""
    key = one[0]
    lasts = isinstance(key, str) and "." in key.partition(":")[2]
    return one in m.finished.guards or (one in m.path and (lasts or not isinstance(key, str)))


def _may_have_ended(m: Machine, ended: Ended) -> bool:
    """Whether the backward was on the way that is gone, as far as its conditions have names."""
    return compatible(ended.path, m.path) and all(
        isinstance(one[0], str) or one in m.path or one in m.finished.guards for one in ended.path
    )


def _ask_second(m: Machine, ended: Ended, node: ast.Call) -> None:
    value = ended.value
    made = made_of(value)
    if made is None or id(value) in m.finished.asked:
        return
    m.finished.asked |= {id(value), id(made[1])}
    trail = (moment_of(made, Kind.MADE), moment_of(ended.at, Kind.BACKWARD))
    fact = Fact(frozenset(map(StorageId, value.storages)), trail)
    m.put(Kind.REFUSED, "backward", node, m.frame, {"target": fact}, note="second backward")


# --- keeping


def stored(m: Machine, old: Value | None, value: Value, target: ast.expr, statement: ast.stmt) -> None:
    """`target = target + value`, `target += value`: does it take finished graphs of earlier rounds along?"""
    if not m.finished.loops or type(old) is not Memory or type(value) is not Memory:
        return
    if isinstance(statement, ast.AugAssign) and not m.grad_on:
        return
    if isinstance(statement, ast.For | ast.AsyncFor) or id(old) not in ancestors(value, MOST_NODES):
        return
    if _carries(m, old) and (value is not old or isinstance(statement, ast.AugAssign)):
        m.finished.kept.append(Kept(value, here(m, "", statement), ast.unparse(target), old))


def added_on_self(m: Machine, target: ast.expr, value: Value, node: ast.AST) -> None:
    """`self.total += value`, `self.values.append(value)`: kept from call to call."""
    if m.graphs.from_top or type(value) is not Memory or len(m.finished.on_self) >= MOST_KEPT:
        return
    inner = target
    while isinstance(inner, ast.Attribute | ast.Subscript):
        inner = inner.value
    if isinstance(inner, ast.Name) and inner.id == "self" and inner is not target:
        m.finished.on_self.append(Kept(value, here(m, "", node), ast.unparse(target)))


def chained(m: Machine, old: Value | None, value: Value, node: ast.AST, label: str) -> None:
    """An attribute gets a value computed from the one that an earlier step of training left there."""
    if type(old) is not Memory or type(value) is not Memory or not m.graphs.from_top:
        return
    if old.grad < YES or old.leaf or value.grad < YES or value is old or not m.finished.ended:
        return
    ended = [one.order for one in m.finished.ended.values()]
    for loop in m.finished.loops:
        earlier = loop.newest < old.storages[-1] <= loop.newest_of_round
        if earlier and any(loop.began < order < loop.round_began for order in ended):
            if any(one is old for one in _certain(value)):
                m.finished.kept.append(Kept(value, here(m, "", node), label))
            return


def appended(m: Machine, owner: Sequence, given: Arguments, node: ast.Call) -> None:
    """`owner.append(value)`, before it is done."""
    value = given.positional[-1] if given.positional else None
    if type(value) is not Memory or not isinstance(node.func, ast.Attribute) or owner.kind == BOUNDED:
        return
    added_on_self(m, node.func.value, value, node)
    if not m.finished.ended or not m.finished.loops or value.grad < LIKELY:
        return
    if _is_in_short_loop(m, node):
        return
    for item in owner.items[:2]:
        if type(item) is Memory and _carries(m, item):
            m.finished.kept.append(Kept(item, here(m, "", node), ast.unparse(node.func.value)))
            return


def _is_in_short_loop(m: Machine, node: ast.AST) -> bool:
    """Whether the innermost loop goes through items that are written out: `for model in (ours, theirs)`."""
    parents = m.books.syntax(m.frame.node).parents
    here = parents.get(node)
    while here is not None and not isinstance(here, ast.For | ast.While):
        here = parents.get(here)
    return isinstance(here, ast.For) and isinstance(here.iter, ast.Tuple | ast.List)


def _carries(m: Machine, value: Memory) -> bool:
    """Whether the history of a value holds something whose backward was done in an earlier round."""
    if value.kind == ARRAY or value.grad < LIKELY:
        return False
    found, seen = [value], {id(value)}
    for memory in found:
        ended = m.finished.ended.get(id(memory))
        if ended is not None and _may_have_ended(m, ended) and _is_of_an_earlier_round(m, ended):
            return True
        if memory.joined and memory.base is None:
            continue
        for parent in memory.parents if len(found) < MOST_NODES else ():
            if parent.grad >= LIKELY and not parent.leaf and id(parent) not in seen:
                seen.add(id(parent))
                found.append(parent)
    return False


def _is_of_an_earlier_round(m: Machine, ended: Ended) -> bool:
    return any(loop.began < ended.order < loop.round_began for loop in m.finished.loops)


def _has_ended(m: Machine, value: Memory) -> bool:
    """Whether a backward has started at a value, or at what it was computed from at this place."""
    found = [value, *(value.parents if not value.joined else ())]
    return any((ended := m.finished.ended.get(id(one))) is not None and ended.started for one in found)


def finish(m: Machine) -> None:
    """At the end of a root: what was kept and never needed for a backward."""
    for kept in m.finished.on_self:
        if _has_ended(m, kept.value):
            m.finished.kept.append(kept)
    for kept in m.finished.kept:
        op, node, source, label = kept.at
        made = made_of(kept.value)
        if made is not None and id(made[1]) in m.finished.asked:
            continue  # its second backward is told
        trail: list[Moment] = [moment_of(made, Kind.MADE)] if made is not None else []
        fact = Fact(frozenset(map(StorageId, kept.value.storages)), tuple(trail), kept.label)
        m.put(Kind.RETAINED, op, node, Frame(source, {}, (), label), {"kept": fact})
    m.finished.begin()
