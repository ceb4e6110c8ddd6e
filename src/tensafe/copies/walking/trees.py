"""Plain trees, as `state_dict()` gives them: containers, tensors and atoms, copied without a memo.

Nothing in such a tree leads to the same object twice, so that nobody would look into a memo. It is read level
by level, as a level is mostly of one kind; each container is copied as it is met, so that what others do to
it meanwhile is not seen; the tensors are copied in few calls, and put in place from the deepest level up.
"""

from __future__ import annotations

import copyreg
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice
from operator import is_
from typing import Any

import torch

from tensafe.copies.walking import compiled
from tensafe.copies.walking.batches import FEWEST, TENSORS, copied_all, own_storages
from tensafe.copies.walking.objects import ATOMS, COPIERS, TORCH_ATOMS, copied
from tensafe.copies.walking.session import Session
from tensafe.copies.walking.tensors import is_observed

CONTAINERS: frozenset[Any] = frozenset([dict, OrderedDict, list, tuple])
_DICTIONARIES = frozenset([dict, OrderedDict])
_SAME = ATOMS | TORCH_ATOMS
_PLAIN = CONTAINERS | TENSORS | _SAME
_JUST_DICTS = {dict}


@dataclass(slots=True)
class _Level:
    """All values at one depth, in the order in which the containers above hold them."""

    values: list[Any]
    kinds: set[type]
    held: list[Any]  # the containers among them that are copied
    opened: list[Any]  # what each is built on: a copy of a dictionary or list, a tuple, an OrderedDict's keys
    tensors: list[Any]


def of_tree(root: Any) -> Any | None:
    """The copy of a dictionary, list or tuple; None where it may be no plain tree, or is not worth a look."""
    if OrderedDict in copyreg.dispatch_table or torch._C._len_torch_function_stack():
        return None  # a mode would see, and may change, what the walk asks tensors
    return _in_python(root) if compiled.plain is None else _in_c(root, compiled.plain)


def _in_c(root: Any, plain: Any) -> Any | None:
    """As `_in_python`, of any tree."""
    found = plain.open(root)
    if found is None:
        return None
    tree, tensors, containers = found
    described = _described(containers) if OrderedDict in set(map(type, containers)) else []
    if described is None:
        return None
    if tensors:
        copies = None if is_observed() else _copies(tensors)
        if copies is None:
            return None
        plain.fill(tree, copies)
    if described:
        attributes = Session({}, COPIERS, root)
        for x, y in described:
            y.__dict__.update(copied(x.__dict__, attributes))
    return tree


def _described(containers: list[Any]) -> list[tuple[Any, Any]] | None:
    """Containers with attributes, each with its copy; None where the attributes are not plain."""
    sources = containers[::2]
    found = [pair for pair in zip(sources, containers[1::2], strict=True) if _attributes_of(pair[0])]
    seen = set(map(id, sources)) if found else set()
    return found if all(_is_bare(x.__dict__, seen) for x, _ in found) else None


def _in_python(root: Any) -> Any | None:
    """The copy of a tree with more than a few tensors."""
    if not _is_worth_it(root) or is_observed():
        return None
    try:
        levels = _levels(root)
    except (KeyError, RuntimeError):  # somebody changes it meanwhile: the walk says what `copy.deepcopy` says
        return None
    if levels is None:
        return None
    tensors = [x for one in levels for x in one.tensors]
    if len(tensors) < FEWEST:
        return None
    storages = own_storages(tensors)
    if storages is None or len(set(map(id, storages))) != len(storages):
        return None
    copies = _copies(tensors)
    return None if copies is None else _put_together(levels, copies)


def _copies(tensors: list[Any]) -> list[Any] | None:
    """Their copies; None where a rare dtype or layout is among them."""
    try:
        return copied_all(tensors)
    except (RuntimeError, NotImplementedError):
        return None


def _is_worth_it(root: Any) -> bool:
    """Whether there is room for a few tensors, as far as a glance tells."""
    if len(root) >= FEWEST:
        return True
    for x in root.values() if type(root) in _DICTIONARIES else root:
        if type(x) in CONTAINERS and len(x) >= FEWEST:
            return True
    return False


def _levels(root: Any) -> list[_Level] | None:
    """The levels of a tree; None where it is not plain."""
    levels: list[_Level] = []
    seen: set[int] = set()
    values, met = [root], 0
    while values:
        kinds = set(map(type, values))
        if not _PLAIN.issuperset(kinds):
            return None
        held = _held(values, kinds)
        opened, below, keys = _opened(held, kinds)
        seen.update(map(id, held))
        met += len(held)
        if len(seen) != met or not ATOMS.issuperset(map(type, keys)):
            return None
        levels.append(_Level(values, kinds, held, opened, _tensors_among(values, kinds)))
        values = below
    attributed = [x for one in levels if OrderedDict in one.kinds for x in one.held if _attributes_of(x)]
    return levels if all(_is_bare(x.__dict__, seen) for x in attributed) else None


def _held(values: list[Any], kinds: set[type]) -> list[Any]:
    """The containers that are copied: a tuple of atoms is its own copy, and may be met more often."""
    if CONTAINERS.isdisjoint(kinds):
        return []
    if kinds == _JUST_DICTS:
        return values
    held = [x for x in values if type(x) in CONTAINERS]
    return held if tuple not in kinds else [x for x in held if not _is_same(x)]


def _is_same(x: Any) -> bool:
    return type(x) is tuple and _SAME.issuperset(map(type, x))


def _opened(held: list[Any], kinds: set[type]) -> tuple[list[Any], list[Any], Iterable[Any]]:
    """What containers are built on, their items in order, and all keys."""
    if kinds == _JUST_DICTS:
        opened = list(map(dict.copy, held))
        return opened, list(chain.from_iterable(map(dict.values, opened))), chain.from_iterable(opened)
    opened = [_OPENED[type(x)](x) for x in held]
    items = chain.from_iterable(map(_items_of, held, opened))
    keys = (y for x, y in zip(held, opened, strict=True) if type(x) in _DICTIONARIES)
    return opened, list(items), chain.from_iterable(keys)


_OPENED: dict[type, Any] = {dict: dict.copy, list: list, OrderedDict: list, tuple: tuple}


def _items_of(x: Any, opened: Any) -> Iterable[Any]:
    kind = type(x)
    if kind is OrderedDict:
        return map(x.__getitem__, opened)
    return opened.values() if kind is dict else opened  # type: ignore[no-any-return]


def _tensors_among(values: list[Any], kinds: set[type]) -> list[Any]:
    if TENSORS.issuperset(kinds):
        return values
    return [] if TENSORS.isdisjoint(kinds) else [x for x in values if type(x) in TENSORS]


def _attributes_of(x: Any) -> Any:
    return type(x) is OrderedDict and x.__dict__


def _is_bare(attributes: Any, seen: set[int]) -> bool:
    """Whether they are atoms alone, in plain containers that are not of the tree."""
    if type(attributes) is not dict:
        return False
    level, count = [attributes], 0
    while level:
        below: list[Any] = []
        for one in level:
            if id(one) in seen or _attributes_of(one):
                return False
            below += chain(one, one.values()) if type(one) in _DICTIONARIES else one
        count += len(below)
        level = [one for one in below if type(one) not in ATOMS]
        if count > _MOST or not CONTAINERS.issuperset(map(type, level)):
            return False
    return True


_MOST = 100_000
"""So many values of attributes are looked at: a cycle has no end."""


def _put_together(levels: list[_Level], copies: list[Any]) -> Any:
    """The copy of the tree: on each level the containers are filled with what stands for their items."""
    attributes = Session({}, COPIERS, levels[0].values[0])
    end = len(copies)
    items: list[Any] = []
    for level in reversed(levels):
        filled = _filled(level, items, attributes)
        begin = end - len(level.tensors)
        if level.tensors is level.values:
            items = copies[begin:end]
        elif level.held is level.values:
            items = filled
        else:
            new, made = iter(copies[begin:end]), dict(zip(map(id, level.held), filled, strict=True))
            items = [next(new) if type(x) in TENSORS else made.get(id(x), x) for x in level.values]
        end = begin
    return items[0]


def _filled(level: _Level, items: list[Any], attributes: Session) -> list[Any]:
    """The containers of a level with these items, which are those of all of them in order."""
    left = iter(items)
    if level.kinds == _JUST_DICTS:
        for y in level.opened:
            y.update(zip(y, left))  # noqa: B905 (`left` goes on with the next)
        return level.opened
    return [_one_filled(x, y, left, attributes) for x, y in zip(level.held, level.opened, strict=True)]


def _one_filled(x: Any, opened: Any, left: Any, attributes: Session) -> Any:
    kind = type(x)
    if kind in _DICTIONARIES:
        y = kind(zip(opened, left))  # noqa: B905 (`left` goes on with the next)
        if _attributes_of(x):
            y.__dict__.update(copied(x.__dict__, attributes))
        return y
    items = kind(islice(left, len(opened)))
    return x if kind is tuple and all(map(is_, items, x)) else items
