"""What the names of a running frame hold, looked up without leaving a trace in the frame."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from inspect import CO_OPTIMIZED
from types import FrameType, ModuleType
from typing import Any

import torch

from tensafe.runtime.places.frames import INTERNAL, Place

ABSENT: Any = object()
_LOOKS_AT_ITSELF = frozenset({"locals", "vars", "dir", "eval", "exec", "f_locals"})
_TABLES = ("_parameters", "_buffers", "_modules")


def user_frames(depth: int = 2, most: int = 6) -> list[FrameType]:
    """The frames of the user's program, innermost first."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and len(frames) < most:
        if not INTERNAL[frame.f_code.co_filename]:
            frames.append(frame)
        frame = frame.f_back
    return frames


def place_of(frame: FrameType) -> Place:
    return frame.f_code, frame.f_lasti


def variables(frame: FrameType) -> Mapping[str, Any]:
    """The variables of a frame, as a copy; empty where a look would be felt.

    Before Python 3.13 a look leaves a dictionary in the frame that keeps alive what it holds. It is emptied,
    unless somebody else may be using it: a debugger, or a function that asks for its own `locals()`.
    """
    code = frame.f_code
    if not code.co_flags & CO_OPTIMIZED:
        return dict(frame.f_locals)
    if sys.version_info >= (3, 13):
        return dict(frame.f_locals)
    if sys.gettrace() is not None or not _LOOKS_AT_ITSELF.isdisjoint(code.co_names):
        return {}
    own = frame.f_locals
    copy = dict(own)
    if sys.getrefcount(own) <= 3:  # the frame's, this name's and the argument's
        own.clear()
    return copy


def first_argument(frame: FrameType) -> Any:
    """The object whose method a frame runs, by the habit that it comes first; None when there is none."""
    code = frame.f_code
    return variables(frame).get(code.co_varnames[0]) if code.co_argcount else None


class Names:
    """The names of one frame: its variables, then its module's."""

    def __init__(self, frame: FrameType) -> None:
        self.frame = frame
        self.own = variables(frame)

    def value(self, node: ast.expr) -> Any:
        """What an expression of names, attributes and constant keys holds; ABSENT when it needs a call."""
        if isinstance(node, ast.Name):
            return self.own.get(node.id, self.frame.f_globals.get(node.id, ABSENT))
        if isinstance(node, ast.Attribute):
            return attribute(self.value(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            return _item(self.value(node.value), self._key(node.slice))
        return ABSENT

    def _key(self, node: ast.expr) -> Any:
        return node.value if isinstance(node, ast.Constant) else self.value(node)


def attribute(owner: Any, name: str) -> Any:
    """An attribute as it is stored: no code of the program runs."""
    if owner is ABSENT or isinstance(owner, torch.Tensor):
        return ABSENT
    own = _stored(owner)
    if name in own:
        return own[name]
    if isinstance(owner, torch.nn.Module):
        for table in _TABLES:
            if name in own.get(table, {}):
                return own[table][name]
    return vars(owner).get(name, ABSENT) if isinstance(owner, ModuleType) else ABSENT


def _stored(owner: Any) -> Mapping[str, Any]:
    try:
        own = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}
    return own if isinstance(own, dict) else {}


def stored(owner: Any) -> Mapping[str, Any]:
    """The instance attributes of an object; parameters and buffers of a module among them."""
    own = _stored(owner)
    if not isinstance(owner, torch.nn.Module):
        return own
    tables = [own.get(table, {}) for table in ("_buffers", "_parameters")]
    return {**own, **tables[0], **tables[1]}


def _item(holder: Any, key: Any) -> Any:
    if type(holder) not in (list, tuple, dict) or not isinstance(key, int | str):
        return ABSENT
    try:
        return holder[key]
    except (LookupError, TypeError):
        return ABSENT


def held(value: Any, most: int = 256) -> Iterator[tuple[Any, Any]]:
    """Keys and elements of a list, tuple or dict, the first so many."""
    if type(value) in (list, tuple):
        yield from list(enumerate(value))[:most]
    elif isinstance(value, dict):
        yield from list(value.items())[:most]


def shares(value: Any, storage: Any) -> bool:
    """Whether a value is a plain tensor over this storage."""
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        return False
    try:
        return value.untyped_storage() is storage
    except (NotImplementedError, RuntimeError):
        return False
