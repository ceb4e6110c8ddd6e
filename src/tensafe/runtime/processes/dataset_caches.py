"""State of a dataset that lives on one side of the fork only, found in its object and in its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np
import torch

from tensafe.facts import Site
from tensafe.runtime.places.frames import INTERNAL, Place
from tensafe.runtime.places.source import site_of_node, syntax_of
from tensafe.runtime.places.variables import stored
from tensafe.syntax.reading import dotted

FETCHES = ("__getitem__", "__getitems__", "__iter__")
PLAIN_TYPES = (int, float, str, bool)


class Cache(NamedTuple):
    """An attribute, where it is filled, and where it is made."""

    name: str
    place: Place
    filled: Site
    made: Site | None
    is_empty: bool


def find_cache(dataset: Any) -> Cache | None:
    """An attribute that the dataset fills while it fetches, reads again, and has in private memory."""
    own = stored(dataset)
    for place, tree in _fetching(type(dataset)):
        for node in ast.walk(tree):
            name = _filled(node)
            if not name or not _is_private(own.get(name)) or not _is_read(tree, name, node):
                continue
            empty = isinstance(own[name], dict) and not own[name]
            if isinstance(own[name], dict) and not empty:
                continue
            return Cache(name, place, site_of_node(place, node), _made(type(dataset), name), empty)  # type: ignore[arg-type]
    return None


def plain_state(dataset: Any) -> dict[str, Any]:
    """The numbers and words among the attributes of an object."""
    return {name: value for name, value in stored(dataset).items() if type(value) in PLAIN_TYPES}


def reads_changed(dataset: Any, before: dict[str, Any]) -> Cache | None:
    """An attribute that has changed since, and that fetching reads: where it was set, where it is read."""
    now = plain_state(dataset)
    changed = {name for name, value in now.items() if name in before and before[name] != value}
    for place, tree in _fetching(type(dataset)) if changed else ():
        for node in ast.walk(tree):
            name = _read_attribute(node)
            setting = _set_at(type(dataset), name) if name in changed and not _counts(tree, name) else None
            if setting is not None and isinstance(node, ast.expr):
                return Cache(name, place, setting, site_of_node(place, node), False)
    return None


def _read_attribute(node: ast.AST) -> str:
    """The attribute in a read of `self.epoch`."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return ""
    return node.attr if dotted(node.value) == "self" else ""


def _counts(tree: ast.AST, name: str) -> bool:
    """Whether fetching itself sets the attribute."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store)
        for node in ast.walk(tree)
    )


def _filled(node: ast.AST) -> str:
    """The attribute in `self.cache[key] = value`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        if not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Constant):
            return ""
        holder = target.value
        if isinstance(holder, ast.Attribute) and dotted(holder.value) == "self":
            return holder.attr
    return ""


def _is_private(value: Any) -> bool:
    """Whether each process has a copy of its own: no manager's dict, no shared tensor, no mapped file."""
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        return not value.is_shared() and value.device.type == "cpu"
    return (type(value).__module__ in ("builtins", "collections") and isinstance(value, dict)) or (
        type(value) is np.ndarray and type(_bottom(value)) is np.ndarray and _bottom(value).base is None
    )


def _bottom(array: Any) -> Any:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _is_read(tree: ast.AST, name: str, filled: ast.AST) -> bool:
    """Whether the function that fills the attribute also asks whether it is there already."""
    text = f"self.{name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp) and any(
            isinstance(part, ast.Attribute) and dotted(part) == text for part in ast.walk(node.test)
        ):
            return True
        if isinstance(node, ast.Call) and dotted(node.func) == f"{text}.get":
            return True
        if isinstance(node, ast.Try) and any(
            isinstance(part, ast.Attribute) and dotted(part) == text
            for item in node.body
            for part in ast.walk(item)
        ):
            return True
    return False


def _functions(kind: type) -> Iterator[tuple[Place, ast.AST]]:
    """The methods of a class in the program, with their syntax."""
    for base in kind.__mro__:
        for function in vars(base).values():
            code = getattr(function, "__code__", None) if isinstance(function, FunctionType) else None
            if not isinstance(code, CodeType) or INTERNAL[code.co_filename]:
                continue
            syntax = syntax_of(code.co_filename)
            for tree in syntax.parents if syntax is not None else ():
                if (
                    isinstance(tree, ast.FunctionDef)
                    and tree.name == code.co_name
                    and (
                        min([tree.lineno, *(item.lineno for item in tree.decorator_list)])
                        == code.co_firstlineno
                    )
                ):
                    yield (code, 0), tree


def _fetching(kind: type) -> list[tuple[Place, ast.AST]]:
    """The methods that fetch a sample, and those that they call on the object itself."""
    methods = {place[0].co_name: (place, tree) for place, tree in reversed(list(_functions(kind)))}
    reached = [name for name in FETCHES if name in methods]
    for name in reached:
        for node in ast.walk(methods[name][1]):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called = node.func.attr
                if dotted(node.func.value) == "self" and called in methods and called not in reached:
                    reached.append(called)
    return [methods[name] for name in reached]


def _made(kind: type, name: str) -> Site | None:
    return _assigned(kind, name, inside=("__init__",))


def _set_at(kind: type, name: str) -> Site | None:
    """Where the attribute is set later on: by another method, else anywhere else in the class's file."""
    found = _assigned(kind, name, outside=("__init__",))
    if found is not None:
        return found
    for place, _ in _functions(kind):
        syntax = syntax_of(place[0].co_filename)
        for node in syntax.parents if syntax is not None else ():
            if isinstance(node, ast.Assign | ast.AugAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if (
                        isinstance(target, ast.Attribute)
                        and target.attr == name
                        and dotted(target.value) != "self"
                    ):
                        return site_of_node((place[0].replace(co_name="<module>"), 0), node)
    return None


def _assigned(
    kind: type, name: str, inside: tuple[str, ...] = (), outside: tuple[str, ...] = ()
) -> Site | None:
    for place, tree in _functions(kind):
        method = place[0].co_name
        if (inside and method not in inside) or method in outside:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(dotted(target) == f"self.{name}" for target in targets):
                    return site_of_node(place, node)
    return None
