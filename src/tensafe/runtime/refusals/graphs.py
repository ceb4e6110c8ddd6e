"""A second backward through one graph: which part of it was made before the first, and where that one ran."""

from __future__ import annotations

import ast
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from tensafe.facts import Kind, Moment
from tensafe.runtime.graphs import graph
from tensafe.runtime.places.frames import Place, site_of
from tensafe.runtime.places.source import syntax_of
from tensafe.runtime.refusals.frames import statement_at
from tensafe.runtime.refusals.origins import Put, loop_around, site_in
from tensafe.runtime.refusals.refusal import Refusal, value_of
from tensafe.runtime.refusals.trail import is_numbered, next_number, number_of, trail

MOST_BACKWARDS = 64


class Backward(NamedTuple):
    """A backward that freed its graph: where, the number of the next node then, and its roots."""

    place: Place | None
    number: int
    roots: tuple[weakref.ref[torch.Tensor], ...]


class SecondBackward:
    """Remembers the last backwards, and explains why another one finds its graph freed."""

    def __init__(self) -> None:
        self._past: deque[Backward] = deque(maxlen=MOST_BACKWARDS)

    def ended(self, roots: Sequence[torch.Tensor], retained: bool, place: Place | None) -> None:
        if not retained:
            alive = tuple(weakref.ref(root) for root in roots)
            self._past.append(Backward(place, next_number(), alive))

    def forget(self, tensor: torch.Tensor) -> None:
        for entry in [entry for entry in self._past if any(ref() is tensor for ref in entry.roots)]:
            self._past.remove(entry)

    def refused(self, roots: Sequence[torch.Tensor], place: Place | None) -> Refusal:
        """The facts of the second backward: the part that it shares with the first, by its latest node."""
        nodes = [node for node in graph.nodes(root.grad_fn for root in roots) if is_numbered(node)]
        first, reused = self._first(nodes)
        moments: list[Moment | None] = []
        if reused:
            latest = max(reused, key=number_of)
            behind = trail.node_behind(latest) or latest
            moments += _made(trail.place_of(number_of(behind)), behind.name())
        if first is not None:
            moments.append(Moment(Kind.BACKWARD, "backward", site_of(first.place), 0))
        added = _added_up(place)
        if added is not None:
            moments.append(Moment(Kind.KEPT, "", added.site, 0))
        past = [moment for moment in moments if moment is not None]
        return Refusal("second backward", "backward", site_of(place), value_of("", past))

    def _first(self, nodes: Sequence[Any]) -> tuple[Backward | None, list[Any]]:
        """The backward that freed a part of this graph, and that part."""
        mine = set(nodes)
        for entry in self._past:
            alive = [root for ref in entry.roots if (root := ref()) is not None]
            shared = mine.intersection(graph.nodes(root.grad_fn for root in alive))
            shared = {node for node in shared if is_numbered(node) and trail.node_behind(node) is not None}
            if shared:
                return entry, list(shared)
        for entry in reversed(self._past):
            before = [node for node in nodes if number_of(node) < entry.number]
            if before:
                return entry, before
        return None, []


def _made(place: Place | None, op: str) -> list[Moment]:
    """The assignment that keeps what was made at a place, and the expression that made it."""
    made = site_of(place)
    if place is None or made is None:
        return []
    statement = statement_at(place)
    named = isinstance(statement, ast.Assign | ast.AnnAssign) and statement.lineno == made.line
    kept = site_in(place[0].co_filename, statement) if named and statement is not None else made
    return [Moment(Kind.MADE, op, kept, 0), Moment(Kind.SAVED, op, made, 0)]


def _added_up(place: Place | None) -> Put | None:
    """The statement that adds to a backward's root in the loop around it, when nothing there starts anew."""
    statement = statement_at(place) if place is not None else None
    syntax = syntax_of(place[0].co_filename) if place is not None else None
    loop = loop_around(syntax, statement) if syntax is not None and statement is not None else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if (
        place is None
        or loop is None
        or not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
    ):
        return None
    root = ast.unparse(call.func.value)
    adding: list[ast.stmt] = []
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == root:
            adding.append(node)
        elif isinstance(node, ast.Assign) and root in map(ast.unparse, node.targets):
            if root not in {ast.unparse(part) for part in ast.walk(node.value) if isinstance(part, ast.expr)}:
                return None
            adding.append(node)
    return Put(place[0].co_filename, adding[0], None) if adding else None
