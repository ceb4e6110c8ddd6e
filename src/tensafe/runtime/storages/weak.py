"""Facts about the program's objects, keyed by identity and gone with the object."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

Payload = TypeVar("Payload")


class WeakFacts(Generic[Payload]):
    """A mapping from objects (by identity, not equality) to a payload; keeps nothing alive."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[weakref.ref[Any], Payload]] = {}

    def put(self, owner: Any, payload: Payload) -> None:
        key = id(owner)
        entries = self.entries

        def forget(ref: weakref.ref[Any]) -> None:
            entry = entries.get(key)
            if entry is not None and entry[0] is ref:
                del entries[key]

        entries[key] = (weakref.ref(owner, forget), payload)

    def get(self, owner: Any) -> Payload | None:
        entry = self.entries.get(id(owner))
        return entry[1] if entry is not None and entry[0]() is owner else None

    def forget(self, owner: Any) -> None:
        """Drop what is known of this object, and the weak reference to it."""
        self.entries.pop(id(owner), None)

    def items(self) -> Iterator[tuple[Any, Payload]]:
        for ref, payload in list(self.entries.values()):
            owner = ref()
            if owner is not None:
                yield owner, payload
