"""What is remembered of one file for the rules about shared memory."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import NamedTuple

from tensafe.facts import Moment
from tensafe.static.values import Frame, Instance, Memory, Optimizer, Path, State, Value
from tensafe.syntax.reading import Syntax


class Repeat(NamedTuple):
    """One object that a container has under several places, and where that was made."""

    value: Value
    node: ast.AST
    frame: Frame


class Collected(NamedTuple):
    """What a line put into a container, and when."""

    storage: int
    moment: Moment
    container: Value


class Handed(NamedTuple):
    """A live state that another thread is to save: from when on, where, and on which path."""

    state: State
    moment: Moment
    node: ast.Call
    frame: Frame
    path: Path


class Sent(NamedTuple):
    """What a line sent to another process, and when."""

    storage: int
    moment: Moment


class Bound(NamedTuple):
    """A name that got an array over a tensor's memory, where and when."""

    name: str
    node: ast.expr
    moment: Moment


class Held(NamedTuple):
    """An optimizer, and a module made after it that has taken the place of one of its own."""

    optimizer: Optimizer
    module: Value
    frame: Frame
    node: ast.AST
    made: Moment


class Copied(NamedTuple):
    """A part of a model that was copied on its own."""

    value: Value
    node: ast.AST
    frame: Frame


class Unlinked(NamedTuple):
    """A copy that parted a buffer from the parameters over it, and where those were made."""

    node: ast.AST
    frame: Frame
    made: Moment


class Kept(NamedTuple):
    """The statement of a hook that keeps the output as it is."""

    node: ast.AST
    frame: Frame


class Books:
    """Facts by storage, which the values themselves do not carry."""

    def __init__(self) -> None:
        self.defaults: dict[int, Moment] = {}  # the storages of arguments' defaults, and where they are made
        self.imported: dict[int, Moment] = {}  # storages of arrays that tensors were made over
        self.inplace: Moment | None = None  # where the in-place layer at work was made
        self.inplace_layers: dict[int, Moment] = {}  # by storage: where an in-place layer was made
        self.repeats: dict[int, Repeat] = {}  # by id of the value, which the entry keeps alive
        self.collected: dict[ast.AST, Collected] = {}  # by the line that collects
        self.loaders: dict[int, Moment] = {}  # by storage: where a loader with workers was made
        self.in_workers: dict[int, tuple[Value, Moment]] = {}  # by id: datasets of workers that stay alive
        self.threads: dict[int, tuple[Value, tuple[State, ...]]] = {}  # by id: what each is given to save
        self.handed: list[Handed] = []  # what may not have been saved yet
        self.optimizers: list[tuple[Optimizer, Moment]] = []
        self.replaced: list[tuple[Held, str]] = []  # modules put in the place of others, and their spelling
        self.lonely: dict[int, tuple[Value, ast.AST, Frame]] = {}  # optimizers that were deep-copied alone
        self.twins: dict[int, int] = {}  # deep copies of modules, by storage
        self.copied: dict[int, Copied] = {}  # by storage of a weight: the part that was copied with it
        self.windows: dict[int, tuple[int, Moment]] = {}  # parameters over a buffer's memory
        self.unlinked: dict[int, Unlinked] = {}  # by storage of a copied buffer
        self.buffers: set[int] = set()  # the storages of registered buffers
        self.tabled: dict[int, tuple[Memory, Instance, ast.stmt, Frame]] = {}  # by id of the first
        self.converted: dict[int, Moment] = {}  # by id of a module
        self.tied: dict[int, Moment] = {}  # by storage: where a weight became another module's, too
        self.data_ties: list[tuple[int, Moment]] = []  # storages that two parameters share by `.data`
        self.hooked: dict[int, Kept] = {}  # by storage of the module: what its hook does
        self.hook_kept: dict[int, Kept] = {}  # by storage of what a hook keeps
        self.arrays: dict[tuple[int, int], Bound] = {}  # by storage and frame: the first array over it
        self.sent: dict[ast.AST, Sent] = {}  # by the line that sends
        self.appended: dict[ast.AST, Value] = {}  # modules, by the line that puts them into a list
        self.told: set[Hashable] = set()
        self._syntaxes: dict[ast.AST, Syntax] = {}

    def syntax(self, scope: ast.AST) -> Syntax:
        """The parents of the nodes of a function, worked out once."""
        known = self._syntaxes.get(scope)
        if known is None:
            known = self._syntaxes[scope] = Syntax(scope)
        return known

    def tells(self, key: Hashable) -> bool:
        """Whether this has not been told yet; from now on it has."""
        if key in self.told:
            return False
        self.told.add(key)
        return True
