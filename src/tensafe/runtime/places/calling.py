"""One write with all that can be asked about it: its line, its name, its function, and the callers above."""

from __future__ import annotations

import ast
import sys
from functools import cached_property
from types import FrameType
from typing import Any

import torch

from tensafe.facts import Site
from tensafe.runtime.places.frames import _TENSAFE, INTERNAL, Place, site_of
from tensafe.runtime.places.reading import syntax_in
from tensafe.runtime.places.variables import ABSENT, Names, place_of, shares
from tensafe.runtime.places.writing import Scope, call_at, scope_of, statement_at, target_at
from tensafe.syntax.chains import alias_of, links, root_of
from tensafe.syntax.reading import Syntax, dotted


class Caller:
    """A frame of the program on the way to the write."""

    def __init__(self, frame: FrameType) -> None:
        self.frame = frame
        self.place: Place = place_of(frame)

    @cached_property
    def names(self) -> Names:
        return Names(self.frame)

    @property
    def site(self) -> Site | None:
        return site_of(self.place)

    @property
    def statement(self) -> ast.stmt | None:
        return statement_at(self.place)

    @property
    def call(self) -> ast.Call | None:
        return call_at(self.place)

    def spellings(self, given: ast.expr, storage: Any) -> list[str]:
        """The names by which this frame knows the memory of an expression: the tensor's, its module's."""
        alias = alias_of(given)
        if alias is None:
            return []
        root = alias[0]
        for part in _links(given):
            if shares(self.names.value(part), storage):
                texts = [dotted(part)]
                owner = part.value if isinstance(part, ast.Attribute) else None
                if owner is not None and isinstance(self.names.value(owner), torch.nn.Module):
                    texts.append(dotted(owner))
                return texts
        value = self.names.value(root)
        return [dotted(root)] if value is not ABSENT and shares(value, storage) else []


def _links(node: ast.expr) -> list[ast.expr]:
    """The names, attributes and constant items of a chain, from the inside out."""
    return [part for part in reversed(list(links(node))) if not isinstance(part, ast.Call)]


class Writing:
    """A write by a line of the program, to a name of its function."""

    def __init__(
        self,
        op: str,
        target: torch.Tensor,
        arguments: tuple[Any, ...],
        caller: Caller,
        root: ast.expr,
        statement: ast.stmt,
        scope: Scope,
    ) -> None:
        self.op = op
        self.arguments = arguments
        self.storage = target.untyped_storage()
        self.caller = caller
        self.root = root
        self.name = dotted(root)
        self.statement = statement
        self.scope = scope

    @property
    def place(self) -> Place:
        return self.caller.place

    @property
    def syntax(self) -> Syntax:
        return syntax_in(self.scope)

    @property
    def site(self) -> Site | None:
        return self.caller.site

    @property
    def names(self) -> Names:
        return self.caller.names

    def callers(self, most: int) -> list[Caller]:
        """The frames of the program from the writing one outwards; the library's in between do not count."""
        found = [self.caller]
        frame = self.caller.frame.f_back
        while frame is not None and len(found) < most:
            if not INTERNAL[frame.f_code.co_filename]:
                found.append(Caller(frame))
            frame = frame.f_back
        return found


def outside(depth: int = 2) -> FrameType | None:
    """The frame that called into us."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_code.co_filename.startswith(_TENSAFE):
        frame = frame.f_back
    return frame


def writing_at(op: str, target: torch.Tensor, arguments: tuple[Any, ...]) -> Writing | None:
    """The write that is running, if a line of the program itself makes it."""
    frame = outside()
    if frame is None or INTERNAL[frame.f_code.co_filename]:
        return None
    caller = Caller(frame)
    node, statement = target_at(caller.place), caller.statement
    if node is None or statement is None:
        return None
    root, scope = root_of(node), scope_of(caller.place, node)
    if root is None or scope is None:
        return None
    return Writing(op, target, arguments, caller, root, statement, scope)
