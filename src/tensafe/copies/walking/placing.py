"""Copies of tensors onto storages that a plan has laid out: only the bytes that some tensor reaches."""

from __future__ import annotations

from typing import Any

import torch

from tensafe.copies.fresh import bytes_of, clone_of, storage_of
from tensafe.copies.plan import CopyPlan, StorageCopy, View, extent_of, planned, reaches_beyond
from tensafe.copies.reach import tensors_in
from tensafe.copies.walking.batches import copy_beforehand
from tensafe.copies.walking.layouts import cloned, is_plain, uninitialised
from tensafe.copies.walking.objects import copied
from tensafe.copies.walking.session import MISSING, Session
from tensafe.copies.walking.tensors import NonLeafFound, differentiable, is_observed, values_of
from tensafe.memory.packing import Packing

_Parameter = torch.nn.Parameter
_MOST_ROWS = 64
_BY_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}


class Placement:
    """Where the copy of each planned tensor lies; a storage is made when its first tensor is met."""

    def __init__(self, plan: CopyPlan) -> None:
        self._made: dict[int, torch.UntypedStorage] = {}
        self._places = {id(view.tensor): (one, view) for one in plan.storages for view in one.views}
        self._plan = plan  # keeps the tensors alive, and so their ids

    def of(self, x: torch.Tensor) -> torch.Tensor | None:
        """A tensor without history at x's place, None for a tensor that was not planned."""
        found = self._places.get(id(x))
        if found is None:
            return None
        one, view = found
        if len(one.views) == 1 and view.extent.is_dense:  # a `clone()` has the same strides
            return clone_of(x)
        storage = self._made.get(id(one))
        if storage is None:
            storage = self._made[id(one)] = packed(one)
        return _placed(storage, view, x)

    def is_alone(self, x: torch.Tensor) -> bool:
        """Whether no other planned tensor lies in its storage."""
        found = self._places.get(id(x))
        return found is None or len(found[0].views) == 1


def _placed(storage: torch.UntypedStorage, view: View, x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(0, dtype=x.dtype, device=x.device)
    size, new = x.itemsize, view.placed
    strides = tuple(stride // size for stride in new.strides)
    y.set_(storage, new.offset // size, new.shape, strides)
    if x.is_conj():
        torch._C._set_conj(y, True)
    if x.is_neg():
        torch._C._set_neg(y, True)
    return y


def packed(one: StorageCopy) -> torch.UntypedStorage:
    """The new storage of a plan, filled."""
    storage = storage_of(one.copied_nbytes, one.source.device)
    if one.packing is None or not storage.nbytes() or storage.device.type == "meta":
        return storage
    if len(one.packing.rows) > _MOST_ROWS and all(view.extent.is_nested for view in one.views):
        _copy_views(one, storage)
    else:
        _copy_rows(one.packing, one.source, storage)
    return storage


def _copy_rows(packing: Packing, source: torch.UntypedStorage, target: torch.UntypedStorage) -> None:
    old, new = bytes_of(source), bytes_of(target)
    for rows in packing.rows:
        taken = old.as_strided((rows.repeats, rows.length), (rows.stride, 1), rows.start)
        new[rows.place : rows.place + rows.nbytes].view(rows.repeats, rows.length).copy_(taken)


def _copy_views(one: StorageCopy, target: torch.UntypedStorage) -> None:
    """View by view, where the rows are many; bytes that two of them reach are copied twice."""
    for view in one.views:
        size = view.extent.itemsize
        old, new = (torch.empty(0, dtype=_BY_SIZE[size], device=target.device) for _ in range(2))
        for tensor, storage, extent in ((old, one.source, view.extent), (new, target, view.placed)):
            strides = tuple(
                0 if n == 1 else stride // size
                for n, stride in zip(extent.shape, extent.strides, strict=True)
            )
            tensor.set_(storage, extent.offset // size, extent.shape, strides)
        if view.extent.is_dense or 0 not in new.stride():
            new.copy_(old)
        else:
            _without_repeats(new).copy_(_without_repeats(old))


def _without_repeats(tensor: torch.Tensor) -> torch.Tensor:
    """Each element once: dimensions of stride 0 taken at their first index."""
    for axis, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[axis] > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def of_first_compact(x: torch.Tensor, s: Session) -> Any:
    """The first tensor of a session: those that fill their storages are copied as `deepcopy` copies them."""
    s.copiers[torch.Tensor] = s.copiers[_Parameter] = of_compact
    if s.root is not x and not s.grads and not is_observed():
        copy_beforehand(s)
    found = s.memo.get(id(x), MISSING)
    return of_compact(x, s) if found is MISSING else found


def of_compact(x: torch.Tensor, s: Session) -> Any:
    """A tensor or Parameter as `deepcopy` copies it, on memory without dead bytes."""
    if x.requires_grad and not x.is_leaf:
        y = _of_graph(x, s)
    else:
        y = _values(x, s)
        if type(x) is _Parameter:
            y.__class__ = _Parameter
        y.requires_grad_(x.requires_grad)
    s.memo[id(x)] = y
    s.keep(x)
    is_parameter = type(x) is _Parameter
    if x.is_leaf and x.grad is not None and (s.grads or not is_parameter):
        y.grad = copied(x.grad, s)
    if x.__dict__ and not is_parameter:
        y.__dict__ = copied(x.__dict__, s)
    return y


def of_values(x: torch.Tensor, s: Session) -> Any:
    """`x.detach().clone()`, aliases kept; inside a module, Parameters stay Parameters."""
    y = _values(x, s)
    if isinstance(x, _Parameter) and s.in_module and not torch.nn.parameter.is_lazy(x):
        y = _as_parameter(y, x)
    s.memo[id(x)] = y
    s.keep(x)
    return y


def of_clones(x: torch.Tensor, s: Session) -> Any:
    """`x.clone()`, aliases kept where autograd lets them be."""
    has_graph = x.requires_grad and not torch.nn.parameter.is_lazy(x)
    y = _of_graph(x, s) if has_graph else _values(x, s)
    if isinstance(x, _Parameter) and not x.requires_grad and s.in_module:
        y = _as_parameter(y, x)
    s.memo[id(x)] = y
    s.keep(x)
    return y


def _as_parameter(y: torch.Tensor, x: torch.nn.Parameter) -> torch.Tensor:
    """Fresh values as a Parameter of x's class."""
    if type(y) is torch.Tensor:
        y.__class__ = type(x)
        return y.requires_grad_(x.requires_grad)
    return _Parameter(y, x.requires_grad)


def _of_graph(x: torch.Tensor, s: Session) -> torch.Tensor:
    if s.graph == "raise":
        raise NonLeafFound(x)
    if s.graph == "cut":
        return _values(x, s)
    with torch.enable_grad():
        return x.clone() if _placement(s).is_alone(x) else differentiable(x, s)


def _values(x: torch.Tensor, s: Session) -> torch.Tensor:
    """A tensor without history on a new storage of the bytes that are reached.

    No plan is needed for a tensor that fills its storage: whatever else lies in it finds a place in the copy.
    """
    if torch.nn.parameter.is_lazy(x):
        return uninitialised(x)  # type: ignore[no-any-return]
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    try:
        if not is_plain(x):
            return cloned(x)
        storage = x.untyped_storage()
        is_first = id(storage) not in s.own and storage._cdata not in s.storages
        if not is_first or (s.placed is None and storage.nbytes() == x.nbytes and has_own_strides(x)):
            return values_of(x, s)
        if reaches_beyond(x):
            return values_of(x, s)
        y = _placement(s).of(x)
        return clone_of(x) if y is None else y
    finally:
        torch._C._set_grad_enabled(before)


def _placement(s: Session) -> Placement:
    """The plan of everything that the session will meet, made when the first tensor needs it."""
    if s.placed is None:
        s.placed = Placement(planned(tensors_in(s.root, "", s.grads), compact=True))
    return s.placed  # type: ignore[no-any-return]


def has_own_strides(x: torch.Tensor) -> bool:
    """Whether a clone would lie as x does, if x is as large as its storage."""
    return x.is_contiguous() or extent_of(x).is_dense
