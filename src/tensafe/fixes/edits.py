"""Edits of a text by character offsets, and the exception that refuses one."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class Refusal(Exception):
    """This fix cannot be carried out rightly here; the message says why."""


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Put `text` in the place of the characters `start` to `end`; an insertion when both are equal."""

    start: int
    end: int
    text: str


def carried_out(text: str, edits: Iterable[Edit]) -> str:
    """The text after the edits, which must not collide."""
    parts = []
    position = 0
    for edit in sorted(edits):
        parts += [text[position : edit.start], edit.text]
        position = edit.end
    return "".join([*parts, text[position:]])


def collide(one: Edit, other: Edit) -> bool:
    """Whether the order of two edits, or which of them comes first, would matter."""
    if one.start == one.end or other.start == other.end:
        return one.start <= other.end and other.start <= one.end
    return one.start < other.end and other.start < one.end


def collide_among(edits: Sequence[Edit]) -> bool:
    """Whether the edits of one fix overlap; an insertion next to a replacement has its place."""
    ordered = sorted(edits)
    pairs = itertools.pairwise(ordered)
    return any(one.end > other.start or one.start == other.start == other.end for one, other in pairs)


class Accepted:
    """Edits that do not collide with each other, in order: a new one can only collide with its neighbours."""

    NEIGHBOURS = 4  # replacements and insertions that can meet in one place

    def __init__(self) -> None:
        self._ordered: list[Edit] = []
        self._known: set[Edit] = set()

    def __contains__(self, edit: Edit) -> bool:
        return edit in self._known

    def collides(self, edit: Edit) -> bool:
        """Whether the edit collides with one of these."""
        at = bisect.bisect_left(self._ordered, edit)
        return any(
            collide(edit, other)
            for other in self._ordered[max(at - self.NEIGHBOURS, 0) : at + self.NEIGHBOURS]
        )

    def add(self, edits: Iterable[Edit]) -> None:
        for edit in edits:
            bisect.insort(self._ordered, edit)
            self._known.add(edit)
