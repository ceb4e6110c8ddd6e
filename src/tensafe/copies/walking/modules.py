"""Copies of `nn.Module`s: by the protocol of `copy.deepcopy`, asked of the class and not of each module."""

from __future__ import annotations

import copyreg
from collections import OrderedDict
from sys import getrefcount
from typing import Any

import torch

from tensafe.copies.walking.objects import ATOMS, by_protocol, unknown
from tensafe.copies.walking.session import MISSING, Session

_Module = torch.nn.Module
_own_getattr = _Module.__getattr__
_own_getstate = _Module.__dict__.get("__getstate__")
_own_setstate = _Module.__setstate__
_set_attribute = object.__setattr__
_OWN_BOOKS = frozenset(_Module().__dict__)
_BOOKS = frozenset([dict, OrderedDict, set])


def of_module(x: torch.nn.Module, s: Session) -> Any:
    """A module, with hooks and flags as `copy.deepcopy` keeps them; the first of its class."""
    kind = type(x)
    copier = s.copiers[kind] = of_usual_module if is_usual(kind) else of_own_module
    return copier(x, s)


def of_own_module(x: torch.nn.Module, s: Session) -> Any:
    """A module whose class has a protocol of its own."""
    s.in_module += 1
    try:
        return by_protocol(x, s)
    finally:
        s.in_module -= 1


def of_usual_module(x: torch.nn.Module, s: Session) -> Any:
    """A module whose class leaves the protocol to `nn.Module`."""
    if "__deepcopy__" in x.__dict__:
        return of_own_module(x, s)
    kind = type(x)
    y = kind.__new__(kind)
    memo, copiers = s.memo, s.copiers
    memo[id(x)] = y
    state = x.__getstate__()  # a new dictionary, whose values are replaced one by one
    s.kept += (x, state.copy())
    s.in_module += 1
    for name, value in state.items():
        part = type(value)
        if part in ATOMS:
            continue
        is_empty = part in _BOOKS and not value and (part is not OrderedDict or name in _OWN_BOOKS)
        if is_empty and getrefcount(value) == _HELD_BY_ONE:
            state[name] = part()
            continue
        found = memo.get(id(value), MISSING)
        state[name] = copiers.get(part, unknown)(value, s) if found is MISSING else found
    s.in_module -= 1
    if kind.__setstate__ is _own_setstate and "_backward_pre_hooks" in state:  # the last that it would add
        _set_attribute(y, "__dict__", state)  # as `update` does, without one more dictionary
    else:
        y.__setstate__(state)
    return y


def _count_held_by_one() -> int:
    """What `getrefcount` says in the loop above of a value that one module holds and nobody else.

    Nobody else can lead a walk to such a value, so that it needs no place in the memo.
    """
    probe = _Module()
    state = probe.__getstate__() if _own_getstate is not None else probe.__dict__.copy()
    kept = (probe, state.copy())
    counts = [-1, len(kept)]
    for name, value in state.items():
        part = type(value)
        if part is OrderedDict and not value and name in _OWN_BOOKS:
            counts[0] = getrefcount(value)
    return counts[0]


_HELD_BY_ONE = _count_held_by_one()


def is_usual(kind: type[torch.nn.Module]) -> bool:
    """Whether the class leaves the whole protocol to `object` and `nn.Module`."""
    return (
        kind.__getattr__ is _own_getattr
        and kind.__getattribute__ is object.__getattribute__
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and _own_getstate is not None
        and getattr(kind, "__getstate__", None) is _own_getstate
        and not hasattr(kind, "__deepcopy__")
        and not hasattr(kind, "__getnewargs_ex__")
        and not hasattr(kind, "__getnewargs__")
        and kind not in copyreg.dispatch_table
        and not copyreg._slotnames(kind)  # type: ignore[attr-defined]
    )
