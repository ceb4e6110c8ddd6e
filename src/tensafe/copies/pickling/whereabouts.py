"""The path inside an object at which another one is found, for messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import torch

MOST_OBJECTS = 1_000_000
_ATOMIC = (str, bytes, bytearray, int, float, complex, bool, type(None), type)


def path_to(root: Any, sought: Any, name: str = "obj") -> str:
    """The shortest path to an object, `obj["pred"].logits`; in general words when none is found."""
    for path, found in walk(root, name):
        if found is sought:
            return path
    return f"a tensor inside a {type(root).__name__}"


def walk(root: Any, name: str = "obj") -> Iterator[tuple[str, Any]]:
    """Each object once, breadth first, with its path; at most `MOST_OBJECTS`."""
    met = {id(root)}
    kept = [root]  # what is made on the way may not give its id to another
    queue = deque([(name, root)])
    while queue and len(kept) < MOST_OBJECTS:
        path, one = queue.popleft()
        yield path, one
        for step, child in _children(one):
            if not isinstance(child, _ATOMIC) and id(child) not in met:
                met.add(id(child))
                kept.append(child)
                queue.append((path + step, child))


def _children(one: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(one, Mapping) and not isinstance(one, torch.nn.Module):
        yield from ((f"[{key!r}]".replace("'", '"'), one[key]) for key in list(one))
    elif isinstance(one, tuple) and hasattr(one, "_fields"):
        yield from ((f".{field}", getattr(one, field)) for field in one._fields)
    elif isinstance(one, (list, tuple, deque)):
        yield from ((f"[{index}]", child) for index, child in enumerate(one))
    elif isinstance(one, (set, frozenset)):
        yield from (("{...}", child) for child in one)
    yield from _attributes(one)


def _attributes(one: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(one, torch.nn.Module):
        for held in (one._parameters, one._buffers, one._modules):
            yield from ((f".{key}", child) for key, child in held.items())
    own = getattr(one, "__dict__", None)
    if isinstance(own, dict):
        yield from ((f".{key}", child) for key, child in list(own.items()))
    for kind in type(one).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            child = getattr(one, slot, None)
            if child is not None:
                yield f".{slot}", child
