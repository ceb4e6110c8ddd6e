"""What a rule may ask of an engine's past."""

from __future__ import annotations

from typing import Protocol

from tensafe.facts.words import Moment, StorageId


class History(Protocol):
    """A bounded memory of writes; a rule looks back from one moment and keeps no state of its own."""

    def last_write(self, storages: frozenset[StorageId], since: Moment) -> Moment | None:
        """The latest write into any of these storages after `since`, or None."""
