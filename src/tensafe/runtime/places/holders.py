"""Who keeps an object alive, and which line of the source put it there."""

from __future__ import annotations

import ast
import gc
import inspect
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import torch

from tensafe.runtime.places.frames import INTERNAL
from tensafe.runtime.places.source import syntax_of
from tensafe.runtime.refusals.origins import (
    FUNCTIONS,
    Put,
    attribute,
    filled,
    walk_scope,
)

CONTAINERS = (list, tuple, dict, set, deque, defaultdict, OrderedDict)
MOST_DEPTH = 3
MOST_FRAMES = 30
TABLES = ("_buffers", "_parameters", "_modules")


class Name(NamedTuple):
    """A variable (of a running function or of a module) or an attribute that holds an object."""

    name: str
    owner: Any  # the instance whose attribute it is; None for a variable
    filename: str  # of the variable
    line: int  # the first of its function; 0 for a variable of a module


class Holder(NamedTuple):
    """The name under which an object is held, directly or inside a container."""

    name: Name
    inside: bool


def user_frames() -> list[FrameType]:
    """The program's frames that run now, innermost first."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(frames) < MOST_FRAMES:
        if not INTERNAL[frame.f_code.co_filename]:
            frames.append(frame)
        frame = frame.f_back
    return frames


def holders_of(item: Any, frames: Sequence[FrameType], depth: int = MOST_DEPTH) -> Iterator[Holder]:
    """Every name that holds the object, those of the containers that it is in too."""
    referrers = _referrers(item)
    for name in _names(item, referrers, frames):
        yield Holder(name, depth < MOST_DEPTH)
    if depth:
        for container in referrers:
            if type(container) in CONTAINERS and not _is_namespace(container):
                yield from holders_of(container, frames, depth - 1)


def _referrers(item: Any) -> list[Any]:
    ours = {id(sys._getframe(depth)) for depth in range(4)}
    return [referrer for referrer in gc.get_referrers(item) if id(referrer) not in ours]


def _names(item: Any, referrers: list[Any], frames: Sequence[FrameType]) -> Iterator[Name]:
    for frame in frames:
        for name in local_names(frame, item):
            yield Name(name, None, frame.f_code.co_filename, frame.f_code.co_firstlineno)
    for referrer in referrers:
        if type(referrer) in (dict, defaultdict, OrderedDict):
            yield from _in_dict(item, referrer)
        elif type(referrer) not in CONTAINERS and type(vars_of(referrer)) is dict:
            yield from _attributes(item, referrer, vars_of(referrer))


def _in_dict(item: Any, table: dict[Any, Any]) -> Iterator[Name]:
    """The dict may be the namespace of a module, the state of an instance, or a table of an `nn.Module`."""
    if _is_namespace(table):
        filename = table.get("__file__")
        for name in _keys(table, item):
            if isinstance(filename, str):
                yield Name(name, None, filename, 0)
        return
    for owner in gc.get_referrers(table):
        own = vars_of(owner)
        if own is table:
            yield from _attributes(item, owner, table)
        elif isinstance(own, dict) and any(own.get(name) is table for name in TABLES):
            yield from (Name(name, owner, "", 0) for name in _keys(table, item))
        elif type(owner) is dict and any(owner.get(name) is table for name in TABLES):
            for module in gc.get_referrers(owner):
                if isinstance(module, torch.nn.Module):
                    yield from (Name(name, module, "", 0) for name in _keys(table, item))


def _attributes(item: Any, owner: Any, own: dict[Any, Any]) -> Iterator[Name]:
    if not isinstance(owner, ModuleType | FrameType | type):
        yield from (Name(name, owner, "", 0) for name in _keys(own, item))


def _keys(table: dict[Any, Any], item: Any) -> list[str]:
    return [name for name, value in list(table.items()) if value is item and type(name) is str]


def vars_of(owner: Any) -> Any:
    """The attributes of an instance as they are stored; no code of the program runs."""
    try:
        return object.__getattribute__(owner, "__dict__")
    except (AttributeError, TypeError):
        return None


def _is_namespace(holder: Any) -> bool:
    return type(holder) is dict and "__builtins__" in holder


def local_names(frame: FrameType, item: Any) -> list[str]:
    """The local names of a running function that hold an object."""
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return []
    return [name for name, value in local_values(frame).items() if value is item]


def local_values(frame: FrameType) -> dict[str, Any]:
    """The variables of a running function; the frame does not keep them afterwards.

    Before Python 3.13 a frame keeps the dict that it gives, and with it the values; it is emptied, unless the
    program holds it, too.
    """
    own = frame.f_locals
    values = dict(own)
    optimized = frame.f_code.co_flags & inspect.CO_OPTIMIZED
    if optimized and sys.version_info < (3, 13) and sys.getrefcount(own) <= 3:
        own.clear()
    return values


# --- from names to lines


def puts(holder: Holder, frames: Sequence[FrameType]) -> list[Put]:
    """The places in the source that put something under this name or into what it names."""
    name = holder.name
    files = [frame.f_code.co_filename for frame in frames]
    if holder.inside:
        own = [name.filename] if name.owner is None else [file for file, _ in _definitions(type(name.owner))]
        found = filled({name.name}, [*files, *own])
        return [put for put in found if put.filename in own] or found
    if name.owner is not None:
        found = [put for put in _assigned(name.owner, name.name) if not put.is_plain]
        return found or attribute(name.owner, name.name, files)
    scope = _scope(name)
    return [put for put in _bindings(name.filename, scope, name.name) if not put.is_plain] if scope else []


def _scope(name: Name) -> ast.AST | None:
    syntax = syntax_of(name.filename)
    if syntax is None:
        return None
    for node, parent in syntax.parents.items():
        if not name.line and isinstance(parent, ast.Module):
            return parent
        if name.line and isinstance(node, FUNCTIONS) and _first_line(node) == name.line:
            return node
    return None


def _first_line(node: ast.AST) -> int:
    decorators = getattr(node, "decorator_list", [])
    line: int = min([item.lineno for item in decorators] + [getattr(node, "lineno", 0)])
    return line


def _bindings(filename: str, scope: ast.AST, name: str) -> Iterator[Put]:
    for node in walk_scope(scope):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(
                isinstance(part, ast.Name) and part.id == name for target in targets for part in _flat(target)
            ):
                yield Put(filename, node, node.value)


def _flat(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        return [part for element in target.elts for part in _flat(element)]
    return [target.value] if isinstance(target, ast.Starred) else [target]


def _assigned(owner: Any, name: str) -> Iterator[Put]:
    """Assignments to the attribute in the owner's classes: also `+=`, and `setattr` with a computed name."""
    computed: list[Put] = []
    for filename, definition in _definitions(type(owner)):
        for node in ast.walk(definition):
            if (isinstance(node, ast.AugAssign) and _is_own(node.target, name)) or (
                isinstance(node, ast.Assign)
                and any(_is_own(part, name) for target in node.targets for part in _flat(target))
            ):
                yield Put(filename, node, node.value)
            elif isinstance(node, ast.Call) and _sets_attribute(node):
                word = node.args[1 if _called(node) == "setattr" else 0]
                if not isinstance(word, ast.Constant):
                    computed.append(Put(filename, node, node.args[-1]))
                elif word.value == name:
                    yield Put(filename, node, node.args[-1])
    yield from computed


def _sets_attribute(node: ast.Call) -> bool:
    fewest = {"setattr": 3, "register_buffer": 2}.get(_called(node))
    return fewest is not None and len(node.args) >= fewest


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_own(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == name and isinstance(target.value, ast.Name)


def _definitions(cls: type) -> Iterator[tuple[str, ast.ClassDef]]:
    """The source of a class and of its bases, as far as they are the program's own."""
    for part in cls.__mro__:
        for function in list(vars(part).values()):
            code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
            if code is None or INTERNAL[code.co_filename] or "-packages" in code.co_filename:
                continue
            syntax = syntax_of(code.co_filename)
            around = _class_around(syntax.parents, code.co_firstlineno) if syntax is not None else None
            if around is not None:
                yield code.co_filename, around
                break


def _class_around(nodes: Iterable[ast.AST], line: int) -> ast.ClassDef | None:
    around = [
        node
        for node in nodes
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=None)


def prefer_growing(places: Sequence[Put], name: str) -> Put | None:
    """Of several places the one that makes the new value from the old: `x += y`, `x = d * x + y`."""
    growing = [put for put in places if grows(put, name)]
    return (growing or list(places) or [None])[-1]  # type: ignore[list-item]


def grows(put: Put, name: str) -> bool:
    """Whether the new value is made from the old one."""
    return isinstance(put.node, ast.AugAssign) or any(
        getattr(part, "id", None) == name or getattr(part, "attr", None) == name
        for part in (ast.walk(put.value) if put.value is not None else ())
    )
