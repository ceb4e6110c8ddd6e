"""Two shapes of graph in which a gradient flows where it is thrown away or does harm.

A policy loss multiplies a log-probability by an advantage that still has a graph, so that it trains the
critic too. A temporal-difference loss compares a prediction with a target that the same network gave, with
its graph.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch

from tensafe.runtime.graphs import graph

MOST_NODES = 400
MOST_HOPS = 14

RESHAPES = (
    "Squeeze Unsqueeze View UnsafeView ReshapeAlias Sum Mean Select Slice Expand Gather Index Transpose T"
    " Permute Clone Cat Stack MaskedFill Where Unbind Split MaskedSelect ToCopy Alias IndexSelect"
)
SHAPING = frozenset(f"{name}Backward{number}" for name in RESHAPES.split() for number in (0, 1, 2))
LOGARITHMS = frozenset({"LogSoftmaxBackward0", "LogsumexpBackward0", "LogBackward0", "NllLossBackward0"})
AFFINE = frozenset(
    {"AddmmBackward0", "MmBackward0", "BmmBackward0", "LinearBackward0", "MvBackward0", "EmbeddingBackward0"}
)
MAXIMA = frozenset({"MaxBackward0", "MaxBackward1", "AmaxBackward0", "TopkBackward0"})
ARITHMETIC = ("AddBackward0", "SubBackward0", "MulBackward0", "NegBackward0", "DivBackward0", "RsubBackward1")
LOSSES = ("MseLossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0", "L1LossBackward0")


class Leak(NamedTuple):
    """The node at which the gradient goes astray, the value through which it leaks, the leaves it reaches."""

    kind: str  # "baseline", "reference values", "target"
    at: Any
    value: Any
    leaves: list[torch.Tensor]
    sure: bool


def leaks(roots: Iterable[torch.Tensor]) -> Iterator[Leak]:
    """The leaks near these roots."""
    for node in _near(root.grad_fn for root in roots):
        name = node.name()
        found = None
        if name == "MulBackward0":
            found = _advantage(node)
        elif name in LOSSES:
            found = _target(node, node)
        elif name == "PowBackward0":
            inner = _edge(node, 0)
            found = _target(node, inner) if inner is not None and inner.name() == "SubBackward0" else None
        if found is not None:
            yield found


def _near(nodes: Iterable[Any]) -> Iterator[Any]:
    waiting = deque(node for node in nodes if node is not None)
    seen = set(waiting)
    while waiting and len(seen) < MOST_NODES:
        node = waiting.popleft()
        yield node
        for following, _index in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)


def _edge(node: Any, number: int) -> Any:
    edges = node.next_functions
    return edges[number][0] if number < len(edges) else None


# --- a policy loss that trains its baseline


def _advantage(node: Any) -> Leak | None:
    """`(reward - value) * log_prob`, with a graph behind both factors."""
    for weight, likelihood in ((_edge(node, 0), _edge(node, 1)), (_edge(node, 1), _edge(node, 0))):
        if weight is None or likelihood is None:
            continue
        difference = _through(weight, lambda part: part.name() == "SubBackward0", ("NegBackward0",))
        if difference is None or not _is_log_probability(likelihood):
            continue
        minuend, subtrahend = _edge(difference, 0), _edge(difference, 1)
        kind = "baseline" if subtrahend is not None else "reference values"
        value = subtrahend if subtrahend is not None else minuend
        if value is None or not _is_estimate(value):
            continue
        trained = {id(leaf) for leaf in _leaves(likelihood)}
        only = [leaf for leaf in _leaves(value) if id(leaf) not in trained]
        if only:
            return Leak(kind, node, value, only, sure=True)
    return None


def _is_log_probability(node: Any) -> bool:
    """A logarithm below reshaping, ratios and sums: of a categorical or a normal distribution."""
    through = (*ARITHMETIC, "ExpBackward0")
    return _through(node, _is_logarithm, through) is not None


def _is_logarithm(node: Any) -> bool:
    """A logarithm, or the `-(x - mean) ** 2` of a normal distribution of fixed width."""
    if node.name() == "NegBackward0":
        square = _edge(node, 0)
        inner = _edge(square, 0) if square is not None and square.name() == "PowBackward0" else None
        return inner is not None and inner.name() == "SubBackward0"
    return node.name() in LOGARITHMS


def _is_estimate(node: Any) -> bool:
    """The plain output of a layer or a parameter itself: no probability, gate or weight."""
    return _through(node, _ends_in_a_layer, ARITHMETIC) is not None


def _ends_in_a_layer(node: Any) -> bool:
    return node.name() in AFFINE or hasattr(node, "variable")


def _through(node: Any, found: Callable[[Any], bool], names: Iterable[str]) -> Any:
    """The nearest node of a kind below this one, through reshaping and the named nodes only."""
    waiting = deque([(node, 0)])
    while waiting:
        part, hops = waiting.popleft()
        if found(part):
            return part
        if hops < MOST_HOPS and (part.name() in SHAPING or part.name() in names):
            waiting.extend((following, hops + 1) for following, _ in part.next_functions if following)
    return None


# --- a target that is trained too


def _target(loss: Any, node: Any) -> Leak | None:
    """`loss(q(state), reward + gamma * q(next state))`, where the same leaves are behind both."""
    first, second = _edge(node, 0), _edge(node, 1)
    if first is None or second is None:
        return None
    for target, prediction in ((second, first), (first, second)):
        bootstrapped = _bootstrapped(target)
        if bootstrapped is None or _bootstrapped(prediction) is not None:
            continue
        behind = _leaves(target)
        if behind and {id(leaf) for leaf in behind} == {id(leaf) for leaf in _leaves(prediction)}:
            return Leak("target", loss, target, behind, sure=_is_maximum(bootstrapped))
    return None


def _bootstrapped(node: Any) -> Any:
    """The discounted estimate in `constant + discount * estimate`; None when there is no such sum."""
    total = _through(node, lambda part: part.name() == "AddBackward0", ())
    if total is None:
        return None
    edges = [_edge(total, 0), _edge(total, 1)]
    discounted = [edge for edge in edges if edge is not None]
    if len(edges) != 2 or len(discounted) != 1:
        return None
    product = _through(discounted[0], lambda part: part.name() == "MulBackward0", ())
    factors = [_edge(product, 0), _edge(product, 1)] if product is not None else []
    return product if len([factor for factor in factors if factor is not None]) == 1 else None


def _is_maximum(product: Any) -> bool:
    """A maximum over actions, as no other loss has it."""
    return _through(product, lambda part: part.name() in MAXIMA, ("MulBackward0",)) is not None


def _leaves(node: Any) -> list[torch.Tensor]:
    found: dict[int, torch.Tensor] = {}
    for part in graph.nodes([node]):
        variable = getattr(part, "variable", None)
        if variable is not None and not part.next_functions:
            found[id(variable)] = variable
    return list(found.values())
