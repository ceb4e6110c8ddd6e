"""Finds every tensor in what a pickle describes, with every name that reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tensafe.checkpoints.pickled.machine import Machine
from tensafe.checkpoints.pickled.path import Path
from tensafe.checkpoints.pickled.placed import Misfit, Placed, placed
from tensafe.checkpoints.pickled.values import Dict, List, Made, Stored, Tuple, Value
from tensafe.checkpoints.pickled.wrappers import Layer, unwrapped

MOST_REVISITS = 50_000
MOST_NAMES = 200  # of one tensor
MOST_PROBLEMS = 50
MODULE_PARTS = {"_parameters": "parameter", "_buffers": "buffer", "_modules": ""}


@dataclass
class Found:
    """A tensor, array or bare storage with its names."""

    what: Placed | Value
    names: list[str]
    kind: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Visit:
    value: Value
    path: Path
    kind: str = ""
    notes: tuple[str, ...] = ()


@dataclass
class Walk:
    """The tensors of one pickle, in the order in which its names come."""

    found: list[Found] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._seen: dict[int, Found | None] = {}
        self._active: set[int] = set()
        self._layers: dict[int, Layer | None] = {}  # also keeps what `_seen` knows by its id
        self._revisits = 0

    def follow(self, machine: Machine, result: Value, root: Path) -> None:
        """Look at the result first, then at calls and storages that it does not reach."""
        self._visit_all(_Visit(result, root))
        lost = Path(None, "(reached by no name)")
        for value in (*machine.made, *machine.stored, *machine.strays):
            if id(value) not in self._seen:
                self._visit_all(_Visit(value, lost))

    def _visit_all(self, first: _Visit) -> None:
        waiting: list[_Visit | int] = [first]
        while waiting:
            visit = waiting.pop()
            if isinstance(visit, int):
                self._active.discard(visit)
                continue
            inside = list(self._look(visit))
            if inside:
                self._active.add(id(visit.value))
                waiting.append(id(visit.value))
                waiting += reversed(inside)

    def _look(self, visit: _Visit) -> Iterator[_Visit]:
        value = visit.value
        if not isinstance(value, (Made, Stored, Tuple, List, Dict)):
            return
        if id(value) in self._seen:
            self._revisits += 1
            known = self._seen[id(value)]
            if known is not None:
                self._name(known, visit)
                return
            if id(value) in self._active or self._revisits > MOST_REVISITS:
                return
        self._seen[id(value)] = None
        if isinstance(value, Made):
            yield from self._look_at_call(value, visit)
        elif isinstance(value, Stored):
            self._add(value, value, visit, "storage", ())
        elif isinstance(value, Dict):
            yield from _entries(value, visit)
        else:
            for index, item in enumerate(value.items):
                yield _Visit(item, visit.path.item(index), visit.kind, visit.notes)

    def _look_at_call(self, made: Made, visit: _Visit) -> Iterator[_Visit]:
        if id(made) not in self._layers:
            self._layers[id(made)] = unwrapped(made)
        layer = self._layers[id(made)]
        if layer is not None:
            for step, value in layer.inside:
                path = visit.path.attribute(step) if step else visit.path
                yield _Visit(value, path, layer.kind or visit.kind, visit.notes + layer.notes)
            if layer.state is not None:
                yield _Visit(layer.state, visit.path)
            return
        try:
            found = placed(made)
        except Misfit as error:
            self._complain(visit, str(error))
            found = None
        if found is not None:
            self._add(
                made, found, visit, visit.kind or ("array" if found.is_array else "tensor"), found.notes
            )
            self._seen[id(found.storage)] = self._seen.get(id(found.storage))
        if found is None or found.dtype in ("object", "record") or "quantised" in found.notes:
            yield from _contents(made, visit, skip=1 if found is not None else 0)

    def _add(
        self, key: Value, what: Placed | Value, visit: _Visit, kind: str, notes: tuple[str, ...]
    ) -> None:
        found = Found(what, [], kind, tuple(dict.fromkeys(visit.notes + notes)))
        self._seen[id(key)] = found
        self.found.append(found)
        self._name(found, visit)

    def _name(self, found: Found, visit: _Visit) -> None:
        name = str(visit.path)
        if len(found.names) < MOST_NAMES and name not in found.names:
            found.names.append(name)

    def _complain(self, visit: _Visit, what: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(f"{visit.path}: {what}")


def _entries(value: Dict, visit: _Visit) -> Iterator[_Visit]:
    is_optimizer = value.get("state") is not None and value.get("param_groups") is not None
    for key, item in value.pairs():
        kind = "optimizer state" if is_optimizer and key == "state" else visit.kind
        yield _Visit(item, visit.path.key(key), kind, visit.notes)
        if isinstance(key, (Made, Tuple)):
            yield _Visit(key, visit.path.attribute("keys()"))


def _contents(made: Made, visit: _Visit, skip: int = 0) -> Iterator[_Visit]:
    """What a call is given, in the words of the object that it makes."""
    if made.name == "collections.OrderedDict" and made.positional:
        yield from _old_entries(made.positional[0], visit)
    elif isinstance(made.arguments, Tuple):
        for index, item in enumerate(made.arguments.items[skip:], start=skip):
            yield _Visit(item, visit.path.item(index), visit.kind)
    else:
        yield _Visit(made.arguments, visit.path, visit.kind)
    yield _Visit(made.function, visit.path)
    yield _Visit(made.keywords, visit.path)
    if made.items is not None:
        yield _Visit(made.items, visit.path, visit.kind)
    if made.entries is not None:
        yield _Visit(made.entries, visit.path, visit.kind)
    for state in made.states:
        yield from _state(state, visit)


def _old_entries(items: Value, visit: _Visit) -> Iterator[_Visit]:
    """Python 2 gave an OrderedDict its entries as a list of pairs."""
    for pair in items.items if isinstance(items, (List, Tuple)) else ():
        if isinstance(pair, (List, Tuple)) and len(pair.items) == 2:
            yield _Visit(pair.items[1], visit.path.key(pair.items[0]), visit.kind, visit.notes)
        else:
            yield _Visit(pair, visit.path, visit.kind)


def _state(state: Value, visit: _Visit) -> Iterator[_Visit]:
    """The attributes of an object: those of a module without the dicts that it keeps them in."""
    if isinstance(state, Tuple) and len(state.items) == 2:  # `__dict__` and slots
        for part in state.items:
            yield from _state(part, visit) if isinstance(part, Dict) else [_Visit(part, visit.path)]
        return
    if not isinstance(state, Dict):
        yield _Visit(state, visit.path, visit.kind)
        return
    is_module = state.get("_parameters") is not None and state.get("_modules") is not None
    for key, item in state.pairs():
        inner = item.entries if isinstance(item, Made) and item.entries is not None else item
        if is_module and isinstance(key, str) and key in MODULE_PARTS and isinstance(inner, Dict):
            for name, child in inner.pairs():
                yield _Visit(child, visit.path.attribute(str(name)), MODULE_PARTS[key])
        else:
            path = visit.path.attribute(key) if isinstance(key, str) else visit.path.key(key)
            yield _Visit(item, path, visit.kind)
