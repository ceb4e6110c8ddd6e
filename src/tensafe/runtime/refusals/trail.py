"""Which line made which graph node: the places at which autograd saved tensors, by the nodes' own numbers.

A node that kept nothing for its backward left no place; the nearest node behind it that did stands for it.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch

from tensafe.runtime.places.frames import Place

MOST_STRETCHES = 1 << 15
MOST_NODES = 200
UNNUMBERED = 1 << 62  # `AccumulateGrad` nodes have the largest number there is, and no line

Stretch = tuple[int, int, CodeType | None, int]
"""First and last node number of one stretch of saving at one place, and that place."""


class Trail:
    """A bounded past of stretches; `last` moves with every saved tensor, a stretch ends as the place does."""

    __slots__ = ("code", "first", "last", "offset", "past", "threads")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.code: CodeType | None = None
        self.offset = -1
        self.first = self.last = 0
        self.past: deque[Stretch] = deque(maxlen=MOST_STRETCHES)
        self.threads: set[int] = set()

    def move(self, code: CodeType | None, offset: int, number: int) -> None:
        """Tensors are saved at another place from now on."""
        if self.code is not None:
            self.past.append((self.first, self.last, self.code, self.offset))
        self.code, self.offset, self.first = code, offset, number
        self.threads.add(threading.get_ident())

    def pause(self) -> None:
        """What is saved until the next `move` is not seen."""
        if self.code is not None:
            self.past.append((self.first, self.last, self.code, self.offset))
        self.code, self.offset = None, -1

    def place_of(self, number: int) -> Place | None:
        """Where the node of this number saved its tensors; None when it saved none or when that is unsure."""
        if len(self.threads) > 1:  # every thread numbers its own nodes
            return None
        stretches = list(self.past)
        if self.code is not None:
            stretches.append((self.first, self.last, self.code, self.offset))
        at = bisect_right(stretches, number, key=_first) - 1
        if at < 0:
            return None
        first, last, code, offset = stretches[at]
        return (code, offset) if code is not None and first <= number <= last else None

    def place_behind(self, node: Any) -> Place | None:
        """Where this node was made, or else the nearest node behind it that saved something."""
        found = self.node_behind(node)
        return self.place_of(found._sequence_nr()) if found is not None else None

    def node_behind(self, node: Any) -> Any:
        """The nearest node at or behind this one whose place is known: the latest made comes first."""
        waiting, seen = [node], {node}
        for _ in range(MOST_NODES):
            if not waiting:
                return None
            waiting.sort(key=number_of)
            latest = waiting.pop()
            if self.place_of(latest._sequence_nr()) is not None:
                return latest
            for following, _index in latest.next_functions:
                if following is not None and following not in seen and is_numbered(following):
                    seen.add(following)
                    waiting.append(following)
        return None


def _first(stretch: Stretch) -> int:
    return stretch[0]


def number_of(node: Any) -> int:
    """The number that autograd gave to a node: a node made later has a larger one."""
    number: int = node._sequence_nr()
    return number


def is_numbered(node: Any) -> bool:
    return number_of(node) < UNNUMBERED


next_number: Callable[[], int] = getattr(torch._C._autograd, "_get_sequence_nr", lambda: 0)
"""The number of the node that this thread makes next; without it no line is known."""

trail = Trail()
"""What the pack hook of the running engine leaves."""
