"""The tensors received from other processes that are still alive, and who keeps them."""

from __future__ import annotations

import ast
import weakref
from types import FrameType
from typing import Any, NamedTuple

import torch

from tensafe.facts import Site
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.places.frames import Place, site_of
from tensafe.runtime.places.source import site_of_node
from tensafe.runtime.places.variables import held, place_of, stored, user_frames, variables
from tensafe.runtime.places.writing import scope_of, statement_at
from tensafe.syntax.reading import dotted

FEWEST = 32
MOST_LOOKS = 4
APPENDING = frozenset({"append", "extend", "add", "insert", "appendleft", "put"})


class Received:
    """Weak references to the received storages."""

    def __init__(self) -> None:
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._looks = 0
        self._next = 0

    def __len__(self) -> int:
        return len(self._alive)

    def __contains__(self, storage: Any) -> bool:
        ref = self._alive.get(id(storage))
        return ref is not None and ref() is storage

    def add(self, storage: Any) -> None:
        key, alive = id(storage), self._alive
        alive[key] = weakref.ref(storage, lambda ref: alive.pop(key, None) if alive.get(key) is ref else None)

    def is_due(self, most: int) -> bool:
        """Whether so many are alive that somebody should look who keeps them; a few times only."""
        if len(self._alive) < max(most, FEWEST, self._next) or self._looks >= MOST_LOOKS:
            return False
        self._looks += 1
        self._next = len(self._alive) + max(most // 8, 1)
        return True


def most_open_files() -> int:
    """How many files this process may have open."""
    try:
        import resource
    except ImportError:
        return 1_000_000
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft if soft > 0 else 1_000_000


class Keeper(NamedTuple):
    """The line that keeps received tensors in a container, the line that receives them, and one of them."""

    place: Place
    kept: Site
    received: Site | None
    tensor: torch.Tensor


def find_keeper(received: Received) -> Keeper | None:
    """The list or dict, in the frames of the program, that holds most of what was received."""
    for frame in user_frames(2, 4):
        for name, container in _containers(frame):
            items = [item for _, item in held(container, 64)]
            if len(items) >= 16 and all(_is_received(item, received) for item in items):
                place = place_of(frame)
                site = _kept_at(place, name)
                if site is not None:
                    return Keeper(place, site, site_of(place), _tensors(items[0])[0])
    return None


def _containers(frame: FrameType) -> list[tuple[str, Any]]:
    own = variables(frame)
    found = list(own.items())
    if "self" in own:
        found += [(f"self.{name}", value) for name, value in stored(own["self"]).items()]
    return [(name, value) for name, value in found if type(value) in (list, dict)]


def _is_received(item: Any, received: Received) -> bool:
    tensors = _tensors(item)
    return bool(tensors) and all(part.untyped_storage() in received for part in tensors)


def _tensors(item: Any) -> list[torch.Tensor]:
    parts = [item] if isinstance(item, torch.Tensor) else [part for _, part in held(item, 8)]
    return [part for part in parts if type(part) in PLAIN]


def _kept_at(place: Place, name: str) -> Site | None:
    """The statement of the running function that puts something into this container."""
    statement = statement_at(place)
    scope = scope_of(place, statement) if statement is not None else None
    for node in ast.walk(scope) if scope is not None else ():
        container: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            container = node.func.value if node.func.attr in APPENDING else None
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            container = node.targets[0].value
        elif isinstance(node, ast.AugAssign):
            container = node.target
        if container is not None and dotted(container) == name and isinstance(node, ast.expr | ast.stmt):
            return site_of_node(place, node)
    return None
