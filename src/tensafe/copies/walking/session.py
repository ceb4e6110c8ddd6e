"""What one deep copy knows while it goes on: its memo, what it keeps alive, who copies which kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch

from tensafe.copies.fresh import seat, storage_copy

Graph = Literal["raise", "cut", "keep"]
Copier = Callable[[Any, "Session"], Any]
"""Copies one object that is not in the memo yet, and enters it there."""

MISSING: Any = object()
OPTIONS = "tensafe"
"""The key in a memo under which a nested call finds the options of the outer one."""


class Session:
    """One call of `deepcopy` or of a call built on it.

    The memo is `copy.deepcopy`'s, entry for entry (`id(x)` to the copy, `id(memo)` to the objects kept alive,
    "torch" to the storages), so that stock copies nested in a `__deepcopy__` method share what is copied.
    """

    __slots__ = (
        "copiers",
        "each",
        "grads",
        "graph",
        "in_module",
        "is_unread",
        "keep",
        "kept",
        "memo",
        "own",
        "placed",
        "root",
        "storages",
        "together",
    )

    def __init__(self, memo: dict[Any, Any], copiers: dict[type, Copier], root: object) -> None:
        self.is_unread = not memo  # nobody but this session has entered anything yet
        kept = memo.get(id(memo))
        if kept is None:
            kept = memo[id(memo)] = []
        self.memo = memo
        self.kept: list[Any] = kept
        self.keep: Callable[[object], None] = kept.append
        self.copiers = copiers.copy()
        self.root = root
        self.each: Copier | None = None  # what is done to every tensor, of whatever class
        self.graph: Graph = "raise"
        self.grads = False
        self.in_module = 0
        self.storages: dict[int, Any] = MISSING  # memo["torch"], from the first tensor on
        self.own: dict[int, Any] = {}  # sources that fill a storage, by its `id`; not in `storages` yet
        self.placed: Any = None  # where a plan puts tensors, for the copies that follow one
        self.together: set[int] | None = None  # `id`s of tensors that stay in one storage with others

    def lend(self) -> dict[Any, Any]:
        """The memo, with every storage copied so far where stock copies look for it."""
        self.is_unread = False
        if self.own:
            for x in self.own.values():
                y, storage = self.memo[id(x)], x.untyped_storage()
                if x.is_conj() or x.is_neg():
                    with torch.no_grad():
                        seat(y, storage_copy(storage), x)
                self.storages[storage._cdata] = y.untyped_storage()
            self.own.clear()
        return self.memo
