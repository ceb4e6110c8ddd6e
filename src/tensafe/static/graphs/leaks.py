"""Gradients that flow where they are thrown away: into a critic, a target, an idle generator."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensafe.facts import Certainty, Kind
from tensafe.facts import Value as Fact
from tensafe.static.graphs.known import here, made_of, moment_of
from tensafe.static.graphs.leak_patterns import MOST_NODES, NETWORK, Leak, leaks
from tensafe.static.hazards import memories
from tensafe.static.past import history
from tensafe.static.values import LIKELY, YES, Frame, Made, Memory, Optimizer, Value

if TYPE_CHECKING:
    from tensafe.static.machine import Machine

MOST_BACKWARDS = 8
_REINFORCED = re.compile(r"gamma|discount|\bdones?\b|terminal|not_done|bootstrap", re.IGNORECASE)


@dataclass(eq=False, slots=True)
class Sent:
    """A backward that has sent gradients out, and which optimizers have stepped since."""

    loss: Memory
    at: Made
    stepped: list[Optimizer]
    asked: bool = False


def called(m: Machine, result: Value, name: str, node: ast.AST) -> Value:
    """A module (or a function, without a name) was called: what it gives comes from this line."""
    for memory in memories(result):
        if not memory.leaf:
            memory.via = here(m, name, node)
    return result


def network(m: Machine, result: Memory, node: ast.AST) -> None:
    """A network that is known by its name alone was called."""
    result.made = here(m, NETWORK, node)


def is_given(value: Memory) -> bool:
    """Whether a network that is known by its name alone gave this."""
    return value.made is not None and value.made[0] == NETWORK


def backward(m: Machine, loss: Memory, node: ast.AST, retains: bool) -> None:
    """A backward starts at `loss`."""
    looked_at(m, loss, here(m, "backward", node))
    if loss.grad >= LIKELY and not retains:
        m.sent.append(Sent(loss, here(m, "backward", node), []))
        del m.sent[:-MOST_BACKWARDS]


def looked_at(m: Machine, loss: Memory, at: Made | None) -> None:
    if loss.grad >= LIKELY and not m.graphs.refusal_expected and "volatile" not in m.frame.source.text:
        for leak in leaks(loss):
            _found(m, leak, at)


def _found(m: Machine, leak: Leak, at: Made | None) -> None:
    certainty = Certainty.MAY
    made = leak.at.made
    if leak.kind == "target":
        made = leak.value.made
        if not leak.sure and not (made is not None and _REINFORCED.search(ast.unparse(made[1]))):
            certainty = Certainty.OFTEN_MEANT
    elif leak.kind == "reference values":
        made = _call_behind(leak.value) or made_of(leak.value)
    if made is not None:
        _ask(m, leak.kind, made, at, certainty)


def _call_behind(value: Memory) -> Made | None:
    """The call of the network that gave what a value was computed from."""
    live = (one for one in history(value, MOST_NODES) if one.grad >= LIKELY)
    return next((one.via for one in live if one.via is not None and one.via[0]), None)


def _ask(m: Machine, kind: str, made: Made, at: Made | None, certainty: Certainty = Certainty.MAY) -> None:
    fact = Fact(frozenset(), (moment_of(made, Kind.MADE),))
    frame, node = m.frame, None
    if at is not None:
        _, node, source, label = at
        frame = Frame(source, {}, (), label)
    m.put(Kind.LEAKED, "", node, frame, {"leak": fact}, certainty=certainty, note=kind)


# --- a generator whose gradients are zeroed


def stepped(m: Machine, optimizer: Optimizer) -> None:
    """An optimizer steps: what it steps was not sent in vain."""
    for sent in m.sent:
        sent.stepped.append(optimizer)


def zeroed(m: Machine, storages: tuple[int, ...]) -> None:
    """The gradients of these parameters are zeroed."""
    for sent in m.sent:
        if sent.asked or not sent.stepped or not storages:
            continue
        if any(_meet(m, one.storages, storages) for one in sent.stepped):
            continue
        trained = tuple(storage for one in sent.stepped for storage in one.storages)
        behind = history(sent.loss)
        # an optimizer that steps nothing behind the loss may hold parameters that are not known
        if _reach(m, behind, storages) and all(_reach(m, behind, one.storages) for one in sent.stepped):
            sent.asked = True
            where = _where(m, behind, storages, trained)
            if where is not None:
                _ask(m, "discarded", where, sent.at)


def _meet(m: Machine, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return any(m.past.is_within(a, b) or m.past.is_within(b, a) for a in one for b in other)


def _reach(m: Machine, behind: list[Memory], storages: tuple[int, ...]) -> bool:
    return any(
        memory.leaf
        and memory.grad == YES
        and any(m.past.is_within(memory.storages[0], storage) for storage in storages)
        for memory in behind
    )


def _where(m: Machine, behind: list[Memory], idle: tuple[int, ...], trained: tuple[int, ...]) -> Made | None:
    """The first call in which trained parameters take what the idle ones gave: it could be detached there."""
    both = []
    for memory in behind:
        if memory.grad == YES and not memory.leaf:
            inner = history(memory)
            if _reach(m, inner, idle) and _reach(m, inner, trained):
                both.append((len(inner), memory))
    if not both:
        return None
    both.sort(key=lambda one: one[0])
    first = both[0][1]
    enters = [memory for memory in first.parents if not memory.leaf and _reach(m, history(memory), idle)]
    if not enters or any(_reach(m, history(memory), trained) for memory in first.parents if not memory.leaf):
        return None
    inside = first.made[2:] if first.made is not None else None  # the function that computes it
    calls = (memory.via for _, memory in both if memory.via is not None and memory.via[2:] != inside)
    return next(calls, None) or first.made
