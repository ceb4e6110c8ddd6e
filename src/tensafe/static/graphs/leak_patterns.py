"""Two shapes of graph in which a gradient flows where it is thrown away or does harm.

A policy loss multiplies a log-probability by an advantage that still has a graph, so that it trains the
critic too. A temporal-difference loss compares a prediction with a target that the same network gave, with
its graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tensafe.ops import LAYERS, words
from tensafe.static.past import history
from tensafe.static.values import LIKELY, YES, Memory

MOST_NODES = 400
MOST_HOPS = 14
NETWORK = "network"  # what was called: a module of which only the name is known

_SHAPING = words(
    """
    squeeze unsqueeze view reshape sum mean select expand gather index permute clone cat stack masked_fill
    where unbind split masked_select to flatten transpose t index_select contiguous float double cpu cuda
    repeat take
    """
)
_LOGARITHMS = words("log_softmax logsumexp log nll_loss cross_entropy log_prob")
_ARITHMETIC = words("add sub mul neg div rsub")
_LOSSES = words("mse_loss smooth_l1_loss huber_loss l1_loss MSELoss SmoothL1Loss HuberLoss L1Loss")
_MAXIMA = words("max amax topk")


class Leak(NamedTuple):
    """Where the gradient goes astray: the value at fault, and the one through which it leaks."""

    kind: str  # "baseline", "reference values", "target"
    at: Memory
    value: Memory
    sure: bool


def leaks(loss: Memory) -> Iterator[Leak]:
    """The leaks near the end of a loss's history."""
    for memory in history(loss, MOST_NODES):
        if memory.joined or memory.grad < LIKELY or memory.made is None:
            continue
        op = memory.made[0]
        found = None
        if op == "mul":
            found = _advantage(memory)
        elif op in _LOSSES and len(memory.parents) == 2:
            found = _target(memory, *memory.parents)
        elif op == "pow" and memory.parents:
            inner = memory.parents[0]
            if _op(inner) == "sub" and len(inner.parents) == 2:
                found = _target(memory, *inner.parents)
        if found is not None:
            yield found


def _op(memory: Memory) -> str:
    return memory.made[0] if memory.made is not None else ""


def _is_live(memory: Memory) -> bool:
    return memory.grad >= LIKELY and not memory.joined


def _through(start: Memory, found: Callable[[Memory], bool], names: frozenset[str]) -> Memory | None:
    """The nearest value of a kind behind this one, through views, reshaping and the named operations only."""
    waiting, seen = [(start, 0)], {id(start)}
    for memory, hops in waiting:
        if memory.joined:
            return None
        if found(memory):
            return memory
        op = _op(memory)
        if hops < MOST_HOPS and (not op or op in _SHAPING or op in names):
            for parent in memory.parents:
                if parent.grad >= LIKELY and id(parent) not in seen:
                    seen.add(id(parent))
                    waiting.append((parent, hops + 1))
    return None


def _advantage(product: Memory) -> Leak | None:
    """`(reward - value) * log_prob`, with a graph behind both factors."""
    if len(product.parents) != 2:
        return None
    one, other = product.parents
    for weight, likelihood in ((one, other), (other, one)):
        if not _is_live(weight) or not _is_live(likelihood):
            continue
        difference = _through(weight, _is_difference, frozenset({"neg"}))
        if difference is None or _through(likelihood, _is_logarithm, _ARITHMETIC | {"exp"}) is None:
            continue
        minuend, subtrahend = difference.parents
        live = _is_live(subtrahend)
        value = subtrahend if live else minuend
        estimate = _through(value, _is_estimate, _ARITHMETIC) if _is_live(value) else None
        if estimate is not None and leaves(value) - leaves(likelihood):
            return Leak("baseline" if live else "reference values", product, value, sure=True)
    return None


def _is_difference(memory: Memory) -> bool:
    return _op(memory) == "sub" and len(memory.parents) == 2


def _is_logarithm(memory: Memory) -> bool:
    return _op(memory) in _LOGARITHMS


def _is_estimate(memory: Memory) -> bool:
    op = _op(memory)
    layer = LAYERS.get(op)
    if memory.leaf:
        return memory.grad == YES
    return op in (NETWORK, "linear") or (layer is not None and layer.owns_parameters)


def leaves(start: Memory) -> set[int]:
    """The storages of the parameters, and of the networks known by name alone, behind a value."""
    found: set[int] = set()
    for memory in history(start, MOST_NODES):
        if memory.leaf and memory.grad == YES:
            found.add(memory.storages[0])
        elif _op(memory) == NETWORK and memory.parents:
            found.add(memory.parents[-1].storages[0])
    return found


def _target(loss: Memory, first: Memory, second: Memory) -> Leak | None:
    """`loss(q(state), reward + gamma * q(next state))`, where the same parameters are behind both."""
    for target, prediction in ((second, first), (first, second)):
        if not _is_live(target) or not _is_live(prediction):
            continue
        sum_ = _bootstrapped(target)
        if sum_ is None or _bootstrapped(prediction) is not None:
            continue
        behind = leaves(target)
        if behind and behind == leaves(prediction):
            sure = _through(sum_, lambda part: _op(part) in _MAXIMA, _ARITHMETIC) is not None
            return Leak("target", loss, sum_, sure)
    return None


def _bootstrapped(value: Memory) -> Memory | None:
    """`constant + discount * estimate`; None when it is no such sum."""
    total = _through(value, lambda part: _op(part) == "add", frozenset())
    if total is None or not 1 <= len(total.parents) <= 2:
        return None
    live = [parent for parent in total.parents if parent.grad >= LIKELY and leaves(parent)]
    if len(live) != 1:
        return None
    product = _through(live[0], lambda part: _op(part) == "mul", frozenset())
    factors = product.parents if product is not None else ()
    estimates = [factor for factor in factors if factor.grad >= LIKELY and leaves(factor)]
    return total if len(estimates) == 1 else None
