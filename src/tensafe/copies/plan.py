"""What a copy will copy: each storage once, the views on it after; printable and comparable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import torch

from tensafe.copies.reach import Met, tensors_in
from tensafe.copies.walking.layouts import is_plain
from tensafe.copies.walking.paths import name_of
from tensafe.copies.walking.session import Session
from tensafe.memory import Extent, covered, pack
from tensafe.memory.from_torch import NoStorageError, parts_of
from tensafe.memory.packing import Packing


@dataclass(frozen=True)
class View:
    """A tensor: where it lies in its storage, and where its copy will lie in the new one; in bytes."""

    names: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    extent: Extent
    placed: Extent
    tensor: torch.Tensor = field(repr=False, compare=False)


@dataclass(frozen=True)
class StorageCopy:
    """One storage and the views on it; `packing` says which of its bytes are copied, None means all."""

    nbytes: int  # of the source
    copied_nbytes: int
    device: str
    views: tuple[View, ...]
    packing: Packing | None = field(repr=False)
    source: torch.UntypedStorage = field(repr=False, compare=False)


@dataclass(frozen=True, repr=False)
class CopyPlan:
    """Storages in the order in which they are met, and the tensors that are copied by a method of theirs.

    Prints as a list; made by `tensafe.plan`.

    Attributes:
        storages: each once, with its `nbytes`, `copied_nbytes`, `device` and `views`.
        others: sparse, quantised and nested tensors, and subclasses.
    """

    storages: tuple[StorageCopy, ...]
    others: tuple[View, ...]  # sparse, quantised, nested, subclasses: their extents are those of their parts

    @property
    def nbytes(self) -> int:
        """Bytes that will be copied, and that the copy takes."""
        apart = sum(view.placed.nbytes for view in self.others)
        return apart + sum(one.copied_nbytes for one in self.storages if one.device != "meta")

    @property
    def view_count(self) -> int:
        """How many tensors there are."""
        return len(self.others) + sum(len(one.views) for one in self.storages)

    def __repr__(self) -> str:
        tensors, storages = _count(self.view_count, "tensor"), _count(len(self.storages), "storage")
        lines = [f"{tensors} in {storages}, {self.nbytes:,} bytes to copy"]
        for one in self.storages:
            part = f" of {one.nbytes:,}" if one.copied_nbytes != one.nbytes else ""
            lines.append(f"  {one.copied_nbytes:,}{part} bytes on {one.device}")
            lines += [f"    {_line(view)}" for view in one.views]
        lines += [f"  by its own method: {_line(view)}" for view in self.others]
        return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _line(view: View) -> str:
    where = f", bytes {view.placed.start:,} to {view.placed.stop:,}"
    return f"{' = '.join(view.names)}: {view.dtype} {list(view.shape)}{where}"


def plan(obj: object, *, compact: bool = False, grads: bool = False) -> CopyPlan:
    """What `deepcopy(obj)` would copy, or with `compact=True` what `compact(obj)` would; nothing is copied.

    Attributes and containers are looked at without running code of theirs, so that what a `__deepcopy__` or
    `__getstate__` method leaves out is in the plan all the same.
    """
    return planned(tensors_in(obj, name_of(obj), grads), compact)


def planned(met: list[Met], compact: bool) -> CopyPlan:
    """The plan for these tensors."""
    groups: dict[int, list[Met]] = {}
    others = []
    with torch._C.DisableTorchFunction():
        for one in met:
            if is_planned(one.tensor):
                groups.setdefault(one.tensor.untyped_storage()._cdata, []).append(one)
            else:
                others.append(_apart(one))
        storages = [part for group in groups.values() for part in _storage_copies(group, compact)]
    return CopyPlan(tuple(storages), tuple(others))


def is_planned(tensor: torch.Tensor) -> bool:
    """Whether it is plain memory, all of it there: a storage may be freed under its tensor (`resize_(0)`)."""
    is_usual = type(tensor) in (torch.Tensor, torch.nn.Parameter) and is_plain(tensor)
    return is_usual and not reaches_beyond(tensor)


def reaches_beyond(tensor: torch.Tensor) -> bool:
    """Whether a plain tensor has elements for which its storage is too small."""
    return tensor.numel() > 0 and extent_of(tensor).stop > tensor.untyped_storage().nbytes()


def _storage_copies(group: list[Met], compact: bool) -> list[StorageCopy]:
    extents = [extent_of(one.tensor) for one in group]
    storage = group[0].tensor.untyped_storage()
    if compact:
        return [_packed(group, extents, storage)]
    if all(type(one.tensor) is torch.nn.Parameter for one in group) and not keep_together(extents, storage):
        return [_packed([one], [extent], storage) for one, extent in zip(group, extents, strict=True)]
    views = tuple(_view(one, old, old) for one, old in zip(group, extents, strict=True))
    return [StorageCopy(storage.nbytes(), storage.nbytes(), str(storage.device), views, None, storage)]


def keep_together(extents: list[Extent], storage: torch.UntypedStorage) -> bool:
    """Whether Parameters that are alone in a storage stay in one: they overlap, or they fill it."""
    found = covered(extents)
    return found.shared_nbytes > 0 or sum(extent.nbytes for extent in extents) >= storage.nbytes()


def _packed(group: list[Met], extents: list[Extent], storage: torch.UntypedStorage) -> StorageCopy:
    packing = pack(extents)
    views = tuple(_view(one, old, new) for one, old, new in zip(group, extents, packing.extents, strict=True))
    return StorageCopy(storage.nbytes(), packing.nbytes, str(storage.device), views, packing, storage)


def _view(one: Met, old: Extent, new: Extent) -> View:
    tensor = one.tensor
    dtype = str(tensor.dtype).removeprefix("torch.")
    return View(tuple(one.names), tuple(tensor.shape), dtype, old, new, tensor)


def _apart(one: Met) -> View:
    """A tensor that is no plain memory, as one dense extent of all the bytes of its parts."""
    tensor: Any = one.tensor
    try:
        nbytes = sum(part.extent.nbytes for part in parts_of(tensor))
    except NoStorageError:
        nbytes = 0
    has_shape = not (torch.nn.parameter.is_lazy(tensor) or tensor.is_nested)
    shape = tuple(torch.Tensor.size(tensor)) if has_shape else ()
    extent = Extent(0, (nbytes,), (1,), 1)
    return View(tuple(one.names), shape, str(tensor.dtype).removeprefix("torch."), extent, extent, tensor)


def extent_of(tensor: torch.Tensor) -> Extent:
    """Where a plain tensor lies in its storage, in bytes."""
    offset = cast(int, tensor.storage_offset())
    return Extent(offset, tuple(tensor.shape), tensor.stride(), 1).scaled(tensor.itemsize)


def shares_storage(x: torch.Tensor, s: Session) -> bool:
    """Whether a Parameter that is a part of its storage stays in it with others, in the copy of `s.root`."""
    if s.together is None:
        found = planned(tensors_in(s.root, "", s.grads), compact=False)
        s.together = {id(view.tensor) for one in found.storages if one.packing is None for view in one.views}
    return id(x) in s.together
