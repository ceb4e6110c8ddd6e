"""Many tensors at once: those that a walk will meet in plain places are copied beforehand, in few calls."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable
from itertools import chain, repeat
from operator import attrgetter, is_not
from typing import Any

import torch

from tensafe.copies.fresh import LARGE_NBYTES, clone_all
from tensafe.copies.walking import compiled
from tensafe.copies.walking.modules import is_usual
from tensafe.copies.walking.objects import ATOMS
from tensafe.copies.walking.session import Session

FEWEST = 6
"""Below this many tensors, copying one by one is as quick."""

_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
TENSORS = frozenset([_Tensor, _Parameter])
_DICTIONARIES = frozenset([dict, OrderedDict, defaultdict])
_SEQUENCES = frozenset([list, tuple])

_storage_of: Any = torch._C.TensorBase.untyped_storage
_is_contiguous: Any = torch._C.TensorBase.is_contiguous
_storage_nbytes: Any = torch.UntypedStorage.nbytes
_nbytes, _requires_grad, _grad, _attributes = map(attrgetter, ("nbytes", "requires_grad", "grad", "__dict__"))


def copy_beforehand(s: Session) -> None:
    """Enter copies of the root's plain tensors into the memo; the walk finds them there.

    Looked for in containers, modules and their optimizers' states; tensors that share a storage, or that are
    large or anything but plain memory, are left to the walk.
    """
    found = _plain_tensors(s.root)
    if len(found) < FEWEST:
        return
    own = _alone(found, s)
    values = list(own.values())
    try:
        copies = copied_all(values)
    except (RuntimeError, NotImplementedError):  # a rare dtype or layout among them: the walk knows them all
        return
    s.memo.update(zip(map(id, values), copies))  # noqa: B905 (as many, and `strict` costs)
    s.own = {**s.own, **own} if s.own else own
    s.kept += values


def _plain_tensors(root: Any) -> list[Any]:
    """Tensors in plain places; some may be found twice. Level by level, as a level is mostly of one kind."""
    found: list[Any] = []
    seen: set[int] = set()
    usual: dict[type, bool] = {}
    level: list[Any] = [root]
    while level:
        kinds = set(map(type, level)) - ATOMS
        if TENSORS.issuperset(kinds):
            break
        if not kinds.isdisjoint(TENSORS):
            found += [x for x in level if type(x) in TENSORS]
            kinds -= TENSORS
        held = {id(x): x for x in level if type(x) in kinds and id(x) not in seen}
        seen.update(held)
        level = _inside(list(held.values()), kinds, usual)
    found += [x for x in level if type(x) in TENSORS]
    return found


def _inside(level: list[Any], kinds: set[type], usual: dict[type, bool]) -> list[Any]:
    """What these objects hold, those of them whose insides are plain places."""
    if kinds == {dict}:
        return list(chain.from_iterable(map(dict.values, level)))
    return list(chain.from_iterable(chain.from_iterable(_parts(value, usual) for value in level)))


def _parts(value: Any, usual: dict[type, bool]) -> Iterable[Collection[Any]]:
    kind = type(value)
    if kind in _DICTIONARIES:
        return (value.values(),)
    if kind in _SEQUENCES:
        return (value,)
    if kind not in usual:
        usual[kind] = issubclass(kind, torch.nn.Module) and is_usual(kind)
    if usual[kind]:
        get = value.__dict__.get
        parts = (get("_parameters"), get("_buffers"), get("_modules"))
        return [part.values() for part in parts if part]
    if issubclass(kind, torch.optim.Optimizer):
        state = value.__dict__.get("state")
        return (state.values(),) if type(state) in _DICTIONARIES else ()
    return ()


def _alone(found: list[Any], s: Session) -> dict[int, Any]:
    """Those that are small, dense and fill a storage of their own, by the `id` of this; each once.

    Of tensors that are no Parameters only those without gradient and attributes.
    """
    own = _all_alone(found, s)
    return _alone_one_by_one(found, s) if own is None else own


def _all_alone(found: list[Any], s: Session) -> dict[int, Any] | None:
    """As `_alone`, where it is all of them."""
    if s.storages or not (s.is_unread or s.memo.keys().isdisjoint(map(id, found))):
        return None
    storages = own_storages(found)
    return None if storages is None else dict(zip(map(id, storages), found))  # noqa: B905 (`strict` costs)


def own_storages(found: list[Any]) -> list[Any] | None:
    """The storages of tensors, some of which may be one and the same; None where a tensor is not plain.

    Plain is what is small, dense and fills its storage, and, where it is no Parameter, has neither gradient
    nor attributes. Each question is put to all tensors in one C loop.
    """
    if compiled.plain is not None:
        return compiled.plain.own_storages(found)  # type: ignore[no-any-return]
    plain = [x for x in found if type(x) is not _Parameter]
    if any(map(_requires_grad, plain)) or any(map(is_not, map(_grad, plain), repeat(None))):
        return None
    try:
        storages = list(map(_storage_of, found))
        sizes = list(map(_nbytes, found))
        if list(map(_storage_nbytes, storages)) != sizes or not all(map(_is_contiguous, found)):
            return None
    except (NotImplementedError, RuntimeError):  # sparse and opaque layouts
        return None
    return None if max(sizes) >= LARGE_NBYTES or any(map(_attributes, plain)) else storages


def _alone_one_by_one(found: list[Any], s: Session) -> dict[int, Any]:
    """One pass asks everything, as the next tensor is likely not in the cache."""
    own: dict[int, Any] = {}
    memo, known = s.memo, s.storages
    for x in found:
        if id(x) in memo:
            continue
        if type(x) is not _Parameter and (x.requires_grad or x.grad is not None or x.__dict__):
            continue
        try:
            storage = x.untyped_storage()
            if storage.nbytes() != x.nbytes or x.nbytes >= LARGE_NBYTES or not x.is_contiguous():
                continue
        except (NotImplementedError, RuntimeError):  # sparse and opaque layouts
            continue
        key = id(storage)
        if key not in own and not (known and storage._cdata in known):
            own[key] = x
    return own


def copied_all(values: list[Any]) -> list[Any]:
    """Copies of plain tensors, of their classes."""
    copies = clone_all(values)
    if _Parameter in map(type, values):
        for x, y in zip(values, copies, strict=True):
            if type(x) is _Parameter:
                y.__class__ = _Parameter
                y.requires_grad = x.requires_grad
    return copies
