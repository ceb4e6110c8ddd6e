"""What has happened so far: which storage lies in which, who saved it, who wrote it, in program order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensafe.facts import Kind, Moment, StorageId
from tensafe.static.values import Frame, Memory, Path, Save

if TYPE_CHECKING:
    from tensafe.static.twins import Twin


@dataclass(frozen=True, slots=True)
class Write:
    """A write into one storage: when, on which path, and through which kept reference, if any."""

    moment: Moment
    path: Path
    through: tuple[Moment, ...] = ()
    node: ast.AST | None = None


@dataclass(frozen=True, slots=True)
class OneWrite:
    """The History that a rule is given: the one write in question."""

    moment: Moment | None

    def last_write(self, storages: frozenset[StorageId], since: Moment) -> Moment | None:
        """That write, whatever the storages."""
        return self.moment


def compatible(one: Path, other: Path) -> bool:
    """Whether both paths can be taken in one run."""
    if not one or not other:
        return True
    arms = dict(one)
    return all(arms.get(key, arm) == arm for key, arm in other)


def reaches(start: Memory, goal: Memory, limit: int = 4000) -> bool:
    """Whether a backward from `start` passes through `goal`."""
    seen = {id(start)}
    stack = [start]
    while stack:
        memory = stack.pop()
        if memory is goal:
            return True
        for parent in memory.parents:
            if id(parent) not in seen:
                seen.add(id(parent))
                stack.append(parent)
        if len(seen) > limit:
            return False
    return False


def ancestors(start: Memory, limit: int = 4000) -> set[int]:
    """The ids of all values a backward from `start` passes through."""
    return {id(memory) for memory in history(start, limit)}


def history(start: Memory, limit: int = 4000) -> list[Memory]:
    """All values a backward from `start` passes through."""
    seen = {id(start)}
    found = [start]
    for memory in found:
        for parent in memory.parents if len(seen) < limit else ():
            if id(parent) not in seen:
                seen.add(id(parent))
                found.append(parent)
    return found


class Past:
    """The storages of one analysis, and everything that happened to them."""

    def __init__(self) -> None:
        self.order = 0
        self.newest = 0
        self.inside: dict[int, int] = {}  # storage of a parameter -> storage of its module
        self.holds: dict[int, list[int]] = {}
        self.saves: dict[int, list[Save]] = {}
        self.writes: dict[int, list[Write]] = {}
        self.trained: set[int] = set()  # storages that some optimizer steps
        self.meant: set[int] = set()  # orders of the moments of live references that are written through
        self.modules: set[int] = set()  # storages of things that are used as only a module is
        self.twins: list[Twin] = []
        self.bindings: dict[tuple[int, str], Moment] = {}  # where a name got a module that was moved
        self.anonymous_steps: list[Write] = []  # of optimizers whose parameters are not known

    def storage(self) -> int:
        """A storage nobody has."""
        self.newest += 1
        return self.newest

    def tick(self) -> int:
        self.order += 1
        return self.order

    def put_inside(self, inner: int, outer: int) -> None:
        """`inner` belongs to the module whose storage is `outer`."""
        if inner != outer and self.inside.get(inner) != outer and not self._is_around(inner, outer):
            self.inside[inner] = outer
            self.holds.setdefault(outer, []).append(inner)

    def _is_around(self, outer: int, inner: int) -> bool:
        return outer in self.around(inner)

    def around(self, storage: int) -> Iterator[int]:
        """The storages of the modules that hold this one, innermost first."""
        while (outer := self.inside.get(storage)) is not None:
            yield outer
            storage = outer

    def within(self, storage: int) -> Iterator[int]:
        """This storage and all that it holds."""
        yield storage
        for inner in self.holds.get(storage, ()):
            yield from self.within(inner)

    def is_module(self, storages: tuple[int, ...]) -> bool:
        """Whether a thing of which nothing is known has been seen to be a module."""
        return any(storage in self.modules for storage in storages)

    def is_within(self, inner: int, outer: int) -> bool:
        return inner == outer or outer in self.around(inner)

    def save(self, op: str, node: ast.AST, frame: Frame, path: Path, output: Memory, memory: Memory) -> None:
        """Autograd keeps `memory` for the backward of `op`, whose result is `output`."""
        if not memory.exact or memory.moved:
            return
        save = Save(op, node, frame, self.tick(), path, output, memory)
        for storage in memory.storages:
            self.saves.setdefault(storage, []).append(save)

    def saved(self, storages: tuple[int, ...], path: Path) -> list[Save]:
        """What a write into these storages, now, on this path, would spoil."""
        found: list[Save] = []
        for storage in storages:
            spoiled = self._saved_in(storage, path)
            if not spoiled:
                return []  # a value that may lie elsewhere, where nobody would mind
            found += [save for save in spoiled if save not in found]
        return found

    def _saved_in(self, storage: int, path: Path) -> list[Save]:
        if storage not in self.saves and storage not in self.holds:
            return []
        inside = list(self.within(storage)) if storage in self.holds else [storage]
        return [
            save
            for inner in inside
            for save in self.saves.get(inner, ())
            if not save.done and len(save.memory.storages) == 1 and compatible(save.path, path)
        ]

    def write(self, storages: tuple[int, ...], write: Write) -> None:
        for storage in storages:
            self.writes.setdefault(storage, []).append(write)

    def last_write(self, storages: tuple[int, ...], since: Moment, path: Path) -> Write | None:
        """The latest write after `since` into these storages, their parts, or all of a module around them."""
        found = [
            self._latest(self.writes.get(near, []), since, path)
            for storage in storages
            for near in (*self.within(storage), *self.around(storage))
        ]
        found.append(self._latest(self.anonymous_steps, since, path))
        known = [write for write in found if write is not None]
        return max(known, key=lambda write: write.moment.order, default=None)

    def _latest(self, writes: list[Write], since: Moment, path: Path) -> Write | None:
        for write in reversed(writes):
            if write.moment.order <= since.order:
                return None
            if not write.through and compatible(write.path, path):
                return write
        return None

    def forget_saves(self, start: Memory) -> None:
        """A backward from `start` ran: what it needed is free."""
        reached = ancestors(start)
        for saves in self.saves.values():
            for save in saves:
                if id(save.output) in reached:
                    save.done = True


def moment(
    kind: Kind, op: str, past: Past, node: ast.AST, frame: Frame, counted: bool = True, note: str = ""
) -> Moment:
    """Something that happens now, at this node."""
    return Moment(kind, op, frame.source.site(node, frame.label), past.tick(), counted, note)
