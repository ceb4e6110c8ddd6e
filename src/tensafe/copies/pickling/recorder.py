"""The tensors, arrays and storages that a pickler meets, in order, each with a number."""

from __future__ import annotations

from typing import Any


class Recorder:
    """Numbers values and keeps them alive until they are written."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.kinds: list[int] = []

    def add(self, kind: int, value: Any) -> int:
        """The number that stands for the value in the stream."""
        self.values.append(value)
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def clear(self) -> None:
        """Let go of everything."""
        self.values, self.kinds = [], []
