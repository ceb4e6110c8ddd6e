"""One tensor or module under several keys or indices of one container, though each should have its own."""

from __future__ import annotations

import ast
import functools
import linecache
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.compiler import is_compiling

from tensafe.facts import Call, Certainty, Kind, Moment, Site, Value
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import Place, site_of, user_place
from tensafe.runtime.places.names import named_tensors
from tensafe.runtime.places.reading import syntax_in
from tensafe.runtime.places.source import expressions_at, site_of_node
from tensafe.runtime.places.variables import Names, held, place_of, shares, user_frames
from tensafe.runtime.places.writing import assignments, class_of, scope_of, target_at
from tensafe.runtime.storages.ledger import LedgerHistory, clock, ledger_of
from tensafe.runtime.storages.pictures import Drawn, memory_of
from tensafe.runtime.watcher import Context, Watcher
from tensafe.syntax.chains import links, loop_over
from tensafe.syntax.reading import dotted

_SAYS_SHARED = re.compile(r"shar|tied|tying|\btie|same (weight|layer|module)|recurren", re.IGNORECASE)

MOST_KEYS = 4


class Repeats(Watcher):
    """Looks at containers when an element is written, and at modules when they get a child twice."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._told: set[tuple[str, int]] = set()

    def install(self, patches: Patches) -> None:
        patches.wrap(torch.nn.Module, "add_module", self._add_module)

    def first_writes(self, op: str, target: torch.Tensor, arguments: tuple[Any, ...]) -> None:
        frames = user_frames(4, 1)
        if not frames:
            return
        place = place_of(frames[0])
        node = target_at(place)
        if node is None:
            return
        containers = list(_containers(place, node))
        if not containers:
            return
        names = Names(frames[0])
        storage = target.untyped_storage()
        for expression in containers:
            keys = _repeated(names.value(expression), storage)
            if keys:
                site = _made(place, expression)
                if site is not None:
                    self._report("tensor", op, site, site_of(place), target, _parts(expression, keys, target))
                return

    def _add_module(self, call: Callable[..., Any]) -> Callable[..., Any]:
        look = self._context.guarded("Module.add_module", self._look_at_child)

        def add_module(self: Any, name: Any, module: Any) -> Any:
            if module is not None and not is_compiling():
                look(self, module)
            return call(self, name, module)

        return functools.update_wrapper(add_module, call)

    def _look_at_child(self, parent: torch.nn.Module, child: Any) -> None:
        """`parent` is about to get a child that it may have already."""
        own = vars(parent).get("_modules", {})
        if not any(item is child for item in own.values()) or not isinstance(child, torch.nn.Module):
            return
        if next(named_tensors(child), None) is None:
            return
        place = user_place(4)
        made = _multiplied_at(place) if place is not None else None
        if place is None or made is None:
            return
        node, constructs = made
        site = site_of_node(place, node)
        certainty = Certainty.DID if constructs else Certainty.MAY
        if _says_shared(site):
            certainty = Certainty.OFTEN_MEANT
        self._report("module", "Module.add_module", site, site_of(place), None, (), certainty)

    def _report(
        self,
        note: str,
        op: str,
        made: Site,
        used: Site | None,
        target: torch.Tensor | None,
        parts: tuple[Drawn, ...],
        certainty: Certainty = Certainty.DID,
    ) -> None:
        if (made.path, made.line) in self._told:
            return
        self._told.add((made.path, made.line))
        storages = frozenset() if target is None else frozenset({ledger_of(target).id})
        roles = {"repeated": Value(storages, (Moment(Kind.REPEATED, op, used, next(clock)),))}
        call = Call(Kind.REPEATED, op, made, next(clock), roles, certainty, note, memory_of(*parts))
        self._context.ask(call, LedgerHistory({}))


def _containers(place: Place, node: ast.expr) -> Iterator[ast.expr]:
    """The expressions in whose elements the write may land: `counts` in `counts[k] += 1`."""
    for link in links(node):
        if isinstance(link, ast.Subscript) and not isinstance(link.slice, ast.Constant | ast.Slice):
            yield link.value
        if isinstance(link, ast.Name):
            scope = scope_of(place, link)
            over = loop_over(syntax_in(scope), link, link.id) if scope is not None else None
            for part in ast.walk(over) if over is not None else ():
                if isinstance(part, ast.Name | ast.Attribute):
                    yield part


def _repeated(container: Any, storage: Any) -> list[Any]:
    """The keys under which one and the same tensor, over this storage, is there twice or more."""
    hits = [(key, item) for key, item in held(container) if shares(item, storage)]
    same = len(hits) > 1 and all(item is hits[0][1] for _, item in hits[1:])
    return [key for key, _ in hits] if same else []


def _parts(container: ast.expr, keys: list[Any], target: torch.Tensor) -> tuple[Drawn, ...]:
    """One memory under several keys."""
    name = dotted(container)
    return tuple(Drawn("one tensor", target, f"{name}[{key!r}]") for key in keys[:MOST_KEYS])


def _made(place: Place, container: ast.expr) -> Site | None:
    """Where the container got one object for all its places, in the same function, class or module."""
    scope = scope_of(place, container)
    if isinstance(container, ast.Attribute):
        scope = class_of(place, container) or scope
    scopes = [scope, scope_of(place, scope)] if scope is not None else []
    for around in scopes:
        for _, value in assignments(around, dotted(container)) if around is not None else ():
            if _repeats(value):
                return site_of_node(place, value)
    return None


def _repeats(value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and value.args:
        called = dotted(value.func)
        if called in ("list", "tuple"):
            return _repeats(value.args[0])
        return called.rpartition(".")[2] in ("fromkeys", "repeat") and len(value.args) > 1
    return _list_of(value) is not None or _is_one_name(value)


def _is_one_name(value: ast.expr) -> bool:
    """`[state for _ in range(n)]`, where the name is none of the loop's own."""
    if not isinstance(value, ast.ListComp | ast.GeneratorExp | ast.DictComp):
        return False
    element = value.value if isinstance(value, ast.DictComp) else value.elt
    bound = {
        part.id for loop in value.generators for part in ast.walk(loop.target) if isinstance(part, ast.Name)
    }
    named = {part.id for part in ast.walk(element) if isinstance(part, ast.Name)}
    return isinstance(element, ast.Name | ast.Attribute) and not named & bound


def _list_of(value: ast.expr) -> ast.List | ast.Tuple | None:
    """The list in `[...] * n` or `n * [...]`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        for side in (value.left, value.right):
            if isinstance(side, ast.List | ast.Tuple):
                return side
    return None


def _multiplied_at(place: Place) -> tuple[ast.expr, bool] | None:
    """The multiplied list that the call at a place is given, and whether it holds constructor calls."""
    for node in expressions_at(place):
        for part in ast.walk(node):
            if isinstance(part, ast.BinOp) and _list_of(part) is not None:
                return part, _constructs(part)
            if isinstance(part, ast.Name | ast.Attribute):
                scope = scope_of(place, part)
                for _, value in assignments(scope, dotted(part)) if scope is not None else ():
                    if _list_of(value) is not None:
                        return value, _constructs(value)
    return None


def _constructs(value: ast.expr) -> bool:
    elements = _list_of(value)
    return elements is not None and any(isinstance(item, ast.Call) for item in elements.elts)


def _says_shared(site: Site) -> bool:
    """Whether the author says at this line, or right above, that the weights are shared."""
    around = [linecache.getline(site.path, line) for line in (site.line - 1, site.line)]
    return any("#" in line and _SAYS_SHARED.search(line.partition("#")[2]) for line in around)
