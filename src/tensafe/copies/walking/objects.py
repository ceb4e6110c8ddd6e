"""Copies of Python objects, step for step as `copy.deepcopy` makes them; without its price for atoms."""

from __future__ import annotations

import copy
import copyreg
import types
import weakref
from collections import OrderedDict, defaultdict
from typing import Any

import torch

from tensafe.copies.walking.session import MISSING, Copier, Session

ATOMS = frozenset([type(None), int, float, bool, complex, str, bytes, type(...)])
"""Kinds that are their own copy, whatever a memo says; as newer Pythons do it."""

TORCH_ATOMS: frozenset[Any] = frozenset([torch.dtype, torch.device, torch.layout, torch.Size])
"""Kinds of torch that are their own copy."""

FEW = 5
"""So many items are looked up one by one as quickly as all at once."""

_registered: Any = copy._deepcopy_dispatch  # type: ignore[attr-defined]
_by_reduce = copyreg.dispatch_table


def copied(x: Any, s: Session) -> Any:
    """The copy of one object."""
    if type(x) in ATOMS:
        return x
    found = s.memo.get(id(x), MISSING)
    if found is not MISSING:
        return found
    return s.copiers.get(type(x), unknown)(x, s)


def unknown(x: Any, s: Session) -> Any:
    """The copy of an object of a kind that this session meets for the first time."""
    kind = type(x)
    copier = s.copiers[kind] = _choose(kind, s)
    return copier(x, s)


def _choose(kind: type, s: Session) -> Copier:
    if kind in _registered:
        return by_registered
    if issubclass(kind, type):
        return same
    for ancestor, copier in FAMILIES:
        if issubclass(kind, ancestor):
            return copier
    return by_protocol


def same(x: Any, s: Session) -> Any:
    """An object that is its own copy."""
    return x


def by_registered(x: Any, s: Session) -> Any:
    """By a function that somebody put into the table of the `copy` module."""
    return _noted(x, _registered[type(x)](x, s.lend()), s)


def by_protocol(x: Any, s: Session) -> Any:
    """By `__deepcopy__`, `copyreg`, `__reduce_ex__` or `__reduce__`, in this order."""
    copier = getattr(x, "__deepcopy__", None)
    if copier is not None:
        return _noted(x, copier(s.lend()), s)
    reductor = _by_reduce.get(type(x))
    if reductor:
        reduced: Any = reductor(x)
    else:
        reductor = getattr(x, "__reduce_ex__", None)
        if reductor is not None:
            reduced = reductor(4)
        else:
            reductor = getattr(x, "__reduce__", None)
            if not reductor:
                raise copy.Error(f"un(deep)copyable object of type {type(x)}")
            reduced = reductor()
    if isinstance(reduced, str):
        return x
    return _noted(x, _rebuilt(x, s, *reduced), s)


def _noted(x: Any, y: Any, s: Session) -> Any:
    if y is not x:
        s.memo[id(x)] = y
        s.keep(x)
    return y


def _rebuilt(
    x: Any, s: Session, func: Any, args: Any, state: Any = None, listiter: Any = None, dictiter: Any = None
) -> Any:
    if args and not (func is copyreg.__newobj__ and len(args) == 1):  # type: ignore[attr-defined]
        args = [copied(argument, s) for argument in args]
    y = func(*args)
    s.memo[id(x)] = y
    if state is not None:
        known = type(state) is dict and id(state) not in s.memo
        _set_state(y, of_dict(state, s) if known else copied(state, s))
    if listiter is not None:
        for item in listiter:
            y.append(copied(item, s))
    if dictiter is not None:
        for key, value in dictiter:
            key = copied(key, s)
            y[key] = copied(value, s)
    return y


def _set_state(y: Any, state: Any) -> None:
    if hasattr(y, "__setstate__"):
        y.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state is not None:
        y.__dict__.update(state)
    if slots is not None:
        for name, value in slots.items():
            setattr(y, name, value)


def of_list(x: list[Any], s: Session) -> list[Any]:
    """A list, which is in the memo before its items."""
    y: list[Any] = []
    memo, copiers, append = s.memo, s.copiers, y.append
    memo[id(x)] = y
    s.keep(x)
    for item in x:
        kind = type(item)
        if kind in ATOMS:
            append(item)
            continue
        found = memo.get(id(item), MISSING)
        append(copiers.get(kind, unknown)(item, s) if found is MISSING else found)
    return y


def of_dict(x: dict[Any, Any], s: Session) -> dict[Any, Any]:
    """A dictionary, which is in the memo before its items; in one frame, as depth is limited."""
    y: dict[Any, Any] = {}
    memo, copiers = s.memo, s.copiers
    memo[id(x)] = y
    s.keep(x)
    if len(x) > FEW and s.own and _found_all(y, x, memo):
        return y
    for key, value in x.items():
        kind = type(value)
        if kind not in ATOMS:
            found = memo.get(id(value), MISSING)
            value = copiers.get(kind, unknown)(value, s) if found is MISSING else found
        y[key if type(key) in ATOMS else copied(key, s)] = value
    return y


def fill(y: Any, x: Any, s: Session) -> None:
    """Put copies of the items of one dictionary into another."""
    memo, copiers = s.memo, s.copiers
    if len(x) > FEW and s.own and _found_all(y, x, memo):
        return
    for key, value in x.items():
        kind = type(value)
        if kind not in ATOMS:
            found = memo.get(id(value), MISSING)
            value = copiers.get(kind, unknown)(value, s) if found is MISSING else found
        y[key if type(key) in ATOMS else copied(key, s)] = value


def _found_all(y: Any, x: Any, memo: Any) -> bool:
    """Fill from the memo alone, where it knows every value."""
    if not ATOMS.issuperset(map(type, x)):
        return False
    try:
        y.update(zip(x, map(memo.__getitem__, map(id, x.values()))))  # noqa: B905 (as many, and `strict` costs)
    except KeyError:
        y.clear()
        return False
    return True


def of_tuple(x: tuple[Any, ...], s: Session) -> tuple[Any, ...]:
    """A tuple, itself where nothing in it had to be copied."""
    memo, copiers = s.memo, s.copiers
    items: list[Any] = []
    changed = False
    for item in x:
        kind = type(item)
        if kind in ATOMS:
            items.append(item)
            continue
        found = memo.get(id(item), MISSING)
        if found is MISSING:
            found = copiers.get(kind, unknown)(item, s)
        changed = changed or found is not item
        items.append(found)
    known = memo.get(id(x), MISSING)  # a tuple that holds something that holds it
    if known is not MISSING:
        return known  # type: ignore[no-any-return]
    return _noted(x, tuple(items), s) if changed else x


def of_set(x: Any, s: Session) -> Any:
    """A set or frozenset; as with `copy.deepcopy`, in the memo only after its items."""
    if type(x) in _by_reduce:
        return by_protocol(x, s)
    return _noted(x, type(x)([copied(item, s) for item in x]), s)


def of_ordered_dict(x: OrderedDict[Any, Any], s: Session) -> OrderedDict[Any, Any]:
    """An OrderedDict with its attributes, as a `state_dict()` has them."""
    if OrderedDict in _by_reduce:
        return by_protocol(x, s)  # type: ignore[no-any-return]
    y: OrderedDict[Any, Any] = OrderedDict()
    s.memo[id(x)] = y
    s.keep(x)
    if x.__dict__:
        y.__dict__.update(copied(x.__dict__, s))
    if x:
        fill(y, x, s)
    return y


def of_default_dict(x: defaultdict[Any, Any], s: Session) -> defaultdict[Any, Any]:
    """A defaultdict."""
    if defaultdict in _by_reduce:
        return by_protocol(x, s)  # type: ignore[no-any-return]
    y: defaultdict[Any, Any] = defaultdict(copied(x.default_factory, s))
    s.memo[id(x)] = y
    s.keep(x)
    fill(y, x, s)
    return y


def of_method(x: types.MethodType, s: Session) -> Any:
    """A bound method: the same function, bound to the copy."""
    return _noted(x, type(x)(x.__func__, copied(x.__self__, s)), s)


FAMILIES: list[tuple[type, Copier]] = []
"""Kinds whose subclasses have a copier of their own."""

COPIERS: dict[type, Copier] = {
    list: of_list,
    dict: of_dict,
    tuple: of_tuple,
    set: of_set,
    frozenset: of_set,
    OrderedDict: of_ordered_dict,
    defaultdict: of_default_dict,
    types.MethodType: of_method,
    **dict.fromkeys([type(NotImplemented), types.CodeType, type, range, property], same),
    **dict.fromkeys([types.FunctionType, types.BuiltinFunctionType, weakref.ref], same),
}
