"""Who holds an object: the lists and dicts it is in, and the names and attributes of these in the program."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

from tensafe.facts import Moment
from tensafe.runtime.places.frames import _TENSAFE
from tensafe.runtime.refusals.origins import Put

CONTAINERS = (list, tuple, dict, deque)
MOST_DEPTH = 3


def holds(value: Any, item: Any, depth: int = MOST_DEPTH) -> bool:
    """Whether a list, tuple or dict holds this very object, itself or in those inside it."""
    if value is item:
        return True
    return depth > 0 and any(holds(part, item, depth - 1) for part in parts(value))


def parts(value: Any) -> Iterator[Any]:
    """The elements of a plain container; of a subclass too, as its own class stores them."""
    if isinstance(value, dict):
        yield from dict.values(value)
    elif isinstance(value, list):
        yield from list.__iter__(value)
    elif isinstance(value, tuple):
        yield from tuple.__iter__(value)
    elif type(value) is deque:
        yield from value


def names_of_holders(item: Any, depth: int = MOST_DEPTH) -> Iterator[set[str]]:
    """The names under which the program holds the containers that this object is in, the innermost first."""
    holders = [item]
    for _ in range(depth + 1):
        holders = [
            holder
            for inner in holders
            for holder in gc.get_referrers(inner)
            if isinstance(holder, CONTAINERS) and holder is not holders and not _is_namespace(holder)
        ]
        if not holders:
            return
        yield set().union(*map(names_of, holders))


def names_of(container: Any) -> set[str]:
    """The names, attributes and keys under which the program holds this very object."""
    found: set[str] = set()
    for holder in gc.get_referrers(container):
        for name, value in _table(holder).items():
            if value is container and isinstance(name, str):
                found.add(name)
    return found


def _table(holder: Any) -> dict[Any, Any]:
    if isinstance(holder, FrameType):
        return {} if holder.f_code.co_filename.startswith(_TENSAFE) else dict(holder.f_locals)
    if isinstance(holder, dict):
        return holder
    own = getattr(holder, "__dict__", None)
    return own if type(own) is dict else {}


def _is_namespace(holder: Any) -> bool:
    return isinstance(holder, dict) and "__builtins__" in holder


def latest(puts: list[Put], near: Moment | None = None) -> Put | None:
    """The place that fits best: the one on the line that made the value, else the last in the source."""
    line = near.site.line if near is not None and near.site is not None else 0
    return max(puts, key=lambda put: (put.node.lineno == line, put.node.lineno), default=None)
