"""Dictionaries of nothing but plain tensors, as `state_dict()` gives them: copied without a memo."""

from __future__ import annotations

import copyreg
from collections import OrderedDict
from typing import Any

import torch

from tensafe.copies.walking.batches import FEWEST, TENSORS, copied_all, own_storages
from tensafe.copies.walking.objects import ATOMS, COPIERS, copied
from tensafe.copies.walking.session import Session
from tensafe.copies.walking.tensors import is_observed

FLAT = frozenset([dict, OrderedDict])
_CONTAINERS = frozenset([dict, OrderedDict, list, tuple])


def of_flat(x: Any) -> Any | None:
    """The copy of such a dictionary; None where it is not sure that no two of its tensors share memory.

    Nothing in it leads to the same object twice, so that nobody would look into a memo.
    """
    values = list(x.values())
    kinds = set(map(type, values))
    if len(values) < FEWEST or not TENSORS.issuperset(kinds) or not ATOMS.issuperset(map(type, x)):
        return None
    attributes = x.__dict__ if type(x) is OrderedDict else None
    if is_observed() or OrderedDict in copyreg.dispatch_table or (attributes and not _is_bare(attributes)):
        return None
    storages = own_storages(values, kinds)
    if storages is None or len(set(map(id, storages))) != len(storages):
        return None
    try:
        copies = copied_all(values, torch.nn.Parameter in kinds)
    except (RuntimeError, NotImplementedError):  # a rare dtype or layout among them
        return None
    y = type(x)(zip(x, copies))  # noqa: B905 (as many, and `strict` costs)
    if attributes:
        y.__dict__.update(copied(attributes, Session({}, COPIERS, attributes)))
    return y


def _is_bare(tree: Any) -> bool:
    """Whether there are only atoms, in plain containers, so that nothing leads to a tensor."""
    level, seen = [tree], 0
    while level:
        below: list[Any] = []
        for one in level:
            below += one.values() if isinstance(one, dict) else one
            if isinstance(one, OrderedDict) and one.__dict__:
                return False
        seen += len(below)
        level = [one for one in below if type(one) not in ATOMS]
        if seen > _MOST or not _CONTAINERS.issuperset(map(type, level)):
            return False
    return True


_MOST = 100_000
"""So many values are looked at: a tree with a cycle has no end."""
