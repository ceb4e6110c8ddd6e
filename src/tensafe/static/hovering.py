"""What is known of the tensor under a cursor, as the interpreter sees it when it comes to that place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tensafe.facts import Call, History, Site
from tensafe.static.engine import room
from tensafe.static.hazards import memories
from tensafe.static.machine import Machine
from tensafe.static.project import Project
from tensafe.static.roots import run
from tensafe.static.source import Source
from tensafe.static.values import (
    ARRAY,
    LIKELY,
    NO,
    NOTHING_KNOWN,
    POINTER,
    TENSOR,
    YES,
    Instance,
    Memory,
    State,
    Value,
)

Place = ast.Name | ast.Attribute | ast.arg
MOST_NAMES = 6
PERHAPS = "perhaps a tensor"


@dataclass(frozen=True, slots=True)
class Known:
    """What source tells of one name: where it stands, what it is, and sentences about memory and graph."""

    site: Site
    name: str
    kind: str
    facts: tuple[str, ...]


def known_at(path: str, text: str, line: int, column: int) -> Known | None:
    """What is known of the name at this place, counted from 1; None when that is nothing, or no tensor."""
    try:
        with room():
            source = _Whole(path, text, line)
            place = _place_at(source, line, column)
            if place is None:
                return None
            probe = _Probe(source, Project(path), place)
            run(probe)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return probe.known


class _Whole(Source):
    """A source in which the function at one line alone is worth the interpreter's time."""

    def __init__(self, path: str, text: str, line: int) -> None:
        super().__init__(path, text)
        self._line = line

    def has_trigger(self, node: ast.stmt) -> bool:
        return node.lineno <= self._line <= (node.end_lineno or node.lineno)


class _Probe(Machine):
    """Looks at one place whenever the interpreter comes by, and keeps the first that is known for certain."""

    def __init__(self, source: Source, project: Project, place: Place) -> None:
        super().__init__(source, project, _nobody)
        self.known: Known | None = None
        self.entered: dict[int, int] = {}  # for each function at work: the newest storage when it began
        self._place = place
        self._site = source.site(place)
        self._name = place.arg if isinstance(place, ast.arg) else ast.unparse(place)
        self._is_stored = isinstance(place, ast.arg) or not isinstance(place.ctx, ast.Load)

    def eval(self, node: ast.expr) -> Value:
        value = super().eval(node)
        if node is self._place:
            self._look(value)
        return value

    def bind(self, scope: dict[Any, Value], name: Any, value: Value) -> None:
        super().bind(scope, name, value)
        if self._is_stored and isinstance(self._place, ast.Name | ast.Attribute):
            known = self._place.id if isinstance(self._place, ast.Name) else self._place.attr
            if name == known and self._is_at_work():
                self._look(value)

    def block(self, body: list[ast.stmt]) -> bool:
        function = self.frame.node
        if getattr(function, "body", None) is body:
            self.entered[id(self.frame)] = self.past.newest
            if isinstance(self._place, ast.arg) and self._belongs(function):
                self._look(self.frame.scope.get(self._name, NOTHING_KNOWN))
        return super().block(body)

    def _belongs(self, function: object) -> bool:
        arguments = getattr(function, "args", None)
        return arguments is not None and any(node is self._place for node in ast.walk(arguments))

    def _is_at_work(self) -> bool:
        statement, line = self.statement, self._place.lineno
        if statement is None or self.frame.source is not self.source:
            return False
        return statement.lineno <= line <= (statement.end_lineno or statement.lineno)

    def _look(self, value: Value) -> None:
        kind, facts = _described(self, value, self._name)
        if facts and (self.known is None or (self.known.kind == PERHAPS and kind != PERHAPS)):
            self.known = Known(self._site, self._name, kind, facts)


def _nobody(call: Call, history: History) -> None:
    """Takes a question and answers nothing."""


def _place_at(source: Source, line: int, column: int) -> Place | None:
    """The smallest name, attribute or argument that holds the cursor."""
    found: tuple[int, Place] | None = None
    for node in ast.walk(source.tree):
        if isinstance(node, Place) and node.lineno <= line <= (node.end_lineno or node.lineno):
            site = source.site(node)
            if site.line == line == site.end_line and site.column <= column <= site.end_column:
                size = site.end_column - site.column
                if found is None or size < found[0]:
                    found = (size, node)
    return found[1] if found else None


def _described(m: _Probe, value: Value, name: str) -> tuple[str, tuple[str, ...]]:
    if type(value) is State:
        what = "parameters" if value.kind != "state_dict" else "state_dict"
        return f"live {what}", ("memory: that of the module itself; a later step changes it",)
    if type(value) is not Memory:
        return "", ()
    facts = [*_memory_facts(m, value, name), *_history_facts(m, value)]
    if value.kind in (TENSOR, ARRAY, POINTER):
        graph = [_graph_fact(value)] if value.kind == TENSOR else []
        return value.kind, (*facts, *graph, *_cut_facts(value))
    return PERHAPS, tuple(facts)


def _memory_facts(m: _Probe, value: Memory, name: str) -> Iterator[str]:
    others = list(_sharing(m, value, name))[:MOST_NAMES]
    with_whom = f"shared with {', '.join(others)}" if others else ""
    if not value.exact or value.joined:
        if with_whom:
            yield f"memory: perhaps {with_whom}"
    elif value.base is not None:
        yield f"memory: a view{', ' + with_whom if with_whom else ''}"
    elif with_whom:
        yield f"memory: {with_whom}"
    elif value.kind == TENSOR and not value.leaf:
        yield "memory: the caller's" if _came_in(m, value) else "memory: its own, no view"
    if value.hidden and value.kind == TENSOR:
        yield "a write through it passes autograd's version counter"


def _came_in(m: _Probe, value: Memory) -> bool:
    """Whether the function at work was handed this memory: it is older, and neither kept nor global."""
    entered = m.entered.get(id(m.frame))
    if entered is None or min(value.storages) > entered:
        return False
    outside = [held for scope in m.frame.closure for held in scope.values()]
    if isinstance(m.frame.self_value, Instance):
        outside += m.frame.self_value.attributes.values()
    return not any(set(value.storages) & set(one.storages) for held in outside for one in memories(held))


def _sharing(m: Machine, value: Memory, name: str) -> Iterator[str]:
    """The names in sight that lie in the same memory."""
    storages = set(value.storages)
    for other, held in _names_in_sight(m):
        if other != name and any(not storages.isdisjoint(one.storages) for one in memories(held)):
            yield f"`{other}`"


def _names_in_sight(m: Machine) -> Iterator[tuple[str, Value]]:
    seen: set[str] = set()
    for scope in (m.frame.scope, *m.frame.closure):
        for name, held in scope.items():
            if name not in seen:
                seen.add(name)
                yield name, held
    owner = m.frame.self_value
    if isinstance(owner, Instance):
        yield from ((f"self.{name}", held) for name, held in owner.attributes.items())


def _history_facts(m: Machine, value: Memory) -> Iterator[str]:
    writes = [m.past.writes[storage][-1].moment for storage in value.storages if storage in m.past.writes]
    if writes:
        last = max(writes, key=lambda write: write.order)
        yield f"last written by `{last.op}`{_where(last.site)}"
    saves = m.past.saved(value.storages, m.path) if value.exact else []
    if saves:
        save = saves[-1]
        where = _where(save.frame.source.site(save.node))
        yield f"saved for the backward of `{save.op}`{where}: a write in place would spoil its gradient"


def _graph_fact(value: Memory) -> str:
    if value.grad == YES and value.leaf:
        return "graph: a leaf that requires grad"
    if value.grad == YES:
        return "graph: in a graph, backward goes through it"
    if value.grad == LIKELY:
        return "graph: probably in a graph"
    return "graph: in none" if value.grad == NO else "graph: not known from source"


def _cut_facts(value: Memory) -> Iterator[str]:
    for cut in value.cuts[-1:]:
        yield f"left its graph by `{cut.moment.op}`{_where(cut.moment.site)}"


def _where(site: Site | None) -> str:
    return f" at line {site.line}" if site is not None else ""
