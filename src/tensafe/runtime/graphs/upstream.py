"""Whether some parameters behind a loss lie upstream of the others, so that one `detach()` parts them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FrameType
from typing import Any, NamedTuple

import torch

from tensafe.facts import Site
from tensafe.runtime.graphs import graph
from tensafe.runtime.places.frames import site_of
from tensafe.runtime.places.holders import local_values, vars_of
from tensafe.runtime.places.names import named_tensors
from tensafe.runtime.places.source import syntax_of
from tensafe.runtime.refusals.origins import site_in
from tensafe.runtime.refusals.trail import is_numbered, number_of, trail

LAYERS = ("Addmm", "Mm", "Bmm", "Linear", "Mv", "Convolution", "Embedding", "NativeBatchNorm")


class Boundary(NamedTuple):
    """The node that takes in what comes from upstream, and the parameters on either side."""

    node: Any
    turn: tuple[int, int]  # which of how many nodes of this line it is
    leaves: list[torch.Tensor]  # upstream
    others: list[torch.Tensor]

    def site(self, frame: FrameType | None) -> Site | None:
        """The call that hands the value over, in the function that calls backward; else the node's line."""
        call = _handing_over(self, frame) if frame is not None else None
        if call is not None and frame is not None:
            return site_in(frame.f_code.co_filename, call)
        return site_of(trail.place_behind(self.node))


class Below(NamedTuple):
    """What lies below one node: which upstream parameters (a bit each), any of the others, any layer."""

    upstream: int
    others: bool
    layer: bool


NOTHING = Below(0, False, False)


def boundary(
    roots: Sequence[torch.Tensor], upstream: Sequence[torch.Tensor], others: Sequence[torch.Tensor]
) -> Boundary | None:
    """Where a `detach()` cuts off all upstream parameters and none of the others; None if nowhere."""
    ordered = sorted(graph.nodes(root.grad_fn for root in roots), key=_bottom_first)
    below = _below(ordered, upstream, others)
    everything = 0
    for part in below.values():
        everything |= part.upstream
    crossing = None
    for node in ordered:
        if not below[node].others:
            continue
        for following, _index in node.next_functions:
            part = below.get(following, NOTHING)
            if not part.upstream or part.others:
                continue
            if part.upstream != everything or not part.layer:
                return None  # a parameter in the midst of the others
            crossing = node
    if crossing is None:
        return None
    leaves = [parameter for number, parameter in enumerate(upstream) if everything >> number & 1]
    return Boundary(crossing, _turn(crossing, ordered), leaves, list(others))


def _below(
    ordered: Sequence[Any], upstream: Sequence[torch.Tensor], others: Sequence[torch.Tensor]
) -> dict[Any, Below]:
    bits = {id(parameter): 1 << number for number, parameter in enumerate(upstream)}
    wanted = {id(parameter) for parameter in others}
    found: dict[Any, Below] = {}
    for node in ordered:
        leaf = id(getattr(node, "variable", None))
        reached, other, layer = bits.get(leaf, 0), leaf in wanted, node.name().startswith(LAYERS)
        for following, _index in node.next_functions:
            part = found.get(following, NOTHING)
            reached |= part.upstream
            other, layer = other | part.others, layer | part.layer
        found[node] = Below(reached, other, layer)
    return found


def _bottom_first(node: Any) -> tuple[bool, int]:
    return (True, number_of(node)) if is_numbered(node) else (False, 0)


def _turn(crossing: Any, ordered: Sequence[Any]) -> tuple[int, int]:
    place = trail.place_of(number_of(crossing))
    own = _parameters_of(crossing)
    alike = [
        node
        for node in ordered
        if is_numbered(node) and _parameters_of(node) == own and trail.place_of(number_of(node)) == place
    ]
    return alike.index(crossing), len(alike)


def _parameters_of(node: Any) -> set[int]:
    """The parameters that an operation takes itself, or transposed."""
    near = [following for following, _ in node.next_functions if following is not None]
    near += [
        part for following in near if following.name() == "TBackward0" for part, _ in following.next_functions
    ]
    return {id(part.variable) for part in near if hasattr(part, "variable")}  # None has none


# --- the call in the source


def _handing_over(found: Boundary, frame: FrameType) -> ast.Call | None:
    """`D(fake)` where `fake` was bound to `G(...)`: the modules are known by the parameters they hold.

    Where the value came from elsewhere, the calls of `D` are told apart by their turn.
    """
    syntax = syntax_of(frame.f_code.co_filename)
    if syntax is None:
        return None
    makers, takers = _calls_of(found, frame, _calls(syntax.parents, frame))
    before = sorted((call for call in takers if call.lineno <= frame.f_lineno), key=_position)
    made = {
        target.id
        for call in makers
        if isinstance(parent := syntax.parents.get(call), ast.Assign)
        for target in parent.targets
        if isinstance(target, ast.Name)
    }
    taking = [call for call in before if _takes(call, makers, made)]
    if not taking and len(before) == found.turn[1]:
        return before[found.turn[0]]
    return taking[-1] if taking else None


def _position(call: ast.Call) -> tuple[int, int]:
    return call.lineno, call.col_offset


def _calls_of(
    found: Boundary, frame: FrameType, calls: Sequence[ast.Call]
) -> tuple[list[ast.Call], list[ast.Call]]:
    """The calls of modules that hold the upstream parameters alone, and of those with the others alone."""
    upstream, others = {id(leaf) for leaf in found.leaves}, {id(leaf) for leaf in found.others}
    makers, takers = [], []
    values = local_values(frame)
    for call in calls:
        module = _held(call.func, frame, values)
        if isinstance(module, torch.nn.Module):
            own = {id(parameter) for _, parameter in named_tensors(module)}
            makers += [call] if own & upstream and not own & others else []
            takers += [call] if own & others and not own & upstream else []
    return makers, takers


def _calls(nodes: Any, frame: FrameType) -> list[ast.Call]:
    lines = [line for _, _, line in frame.f_code.co_lines() if line]
    return [node for node in nodes if isinstance(node, ast.Call) and min(lines) <= node.lineno <= max(lines)]


def _takes(call: ast.Call, makers: list[ast.Call], made: set[str]) -> bool:
    for argument in call.args:
        parts = list(ast.walk(argument))
        if any(isinstance(part, ast.Attribute) and part.attr in ("detach", "data") for part in parts):
            return False
        if any(part in makers or (isinstance(part, ast.Name) and part.id in made) for part in parts):
            return True
    return False


def _held(node: ast.expr, frame: FrameType, values: dict[str, Any]) -> Any:
    """What a name or a path of attributes holds; no code of the program runs."""
    if isinstance(node, ast.Name):
        return values.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        owner = _held(node.value, frame, values)
        own = vars_of(owner)
        if not isinstance(own, dict):
            return None
        return own.get(node.attr, (own.get("_modules") or {}).get(node.attr))
    return None
