"""The memory behind the tensors of a snapshot: each byte once, and how each tensor lies in it."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import torch

from tensafe.copies.fresh import LARGE_NBYTES, below_autograd, clone_all, on_huge_pages
from tensafe.copies.plan import extent_of
from tensafe.copies.walking.compiled import all_give
from tensafe.errors import TensafeError
from tensafe.memory import covered
from tensafe.memory.from_torch import address_of, is_copy_on_write

_address = torch._C._storage_address  # type: ignore[attr-defined]
_nbytes = attrgetter("nbytes")
_Tensor, _STRIDED = torch.Tensor, torch.strided
_DENSE = (_Tensor.is_contiguous, True, _Tensor.is_quantized, False, _Tensor.is_complex, False)
_USUAL = (_Tensor.is_cpu, True, _Tensor.is_nested, False, *_DENSE)


class Seat(NamedTuple):
    """Where a tensor lies in the copy of a piece; `dtype` None says: the piece is the tensor.

    With `dtype` None and strides, the piece is the tensor without its repetitions, to be expanded.
    """

    piece: int
    offset: int = 0  # in elements
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dtype: torch.dtype | None = None


class Pieces(NamedTuple):
    """Tensors that between them cover all bytes to copy, and the seat of each tensor of the snapshot."""

    live: list[torch.Tensor]
    seats: list[Seat] | None  # None says: each tensor is a piece itself
    whole: frozenset[int]  # pieces that are not strided memory and are copied by their own `clone`
    shared: list[int]  # tensors whose piece is not they themselves

    def seat(self, number: int) -> Seat:
        """Where a tensor lies."""
        return Seat(number) if self.seats is None else self.seats[number]


Storages = list[torch.UntypedStorage]


def storages_of(tensors: list[torch.Tensor]) -> Storages | None:
    """The storage of each; None where a tensor has none."""
    try:
        return list(map(_Tensor.untyped_storage, tensors))
    except (NotImplementedError, RuntimeError):  # sparse, opaque
        return None


def usual_storages(tensors: list[torch.Tensor]) -> Storages | None:
    """The storage of each, where each is dense memory of the CPU, of an ordinary dtype."""
    return storages_of(tensors) if all_give(tensors, *_USUAL) else None


def pieces_of(tensors: list[torch.Tensor], storages: Storages | None = None) -> Pieces:
    """Pieces for tensors that may share storages; the usual case, in which none do, costs one look each.

    Args:
        storages: what `usual_storages` gave, where it was asked already.
    """
    simple = storages is not None
    if storages is None:
        storages = storages_of(tensors)
        simple = storages is not None and all_give(tensors, *_DENSE)
    if simple and storages is not None and len(set(storages)) == len(tensors):
        return Pieces(tensors, None, frozenset(), [])
    return _sorted_out(tensors)


def _sorted_out(tensors: list[torch.Tensor]) -> Pieces:
    live: list[torch.Tensor] = []
    seats: list[Seat | None] = [None] * len(tensors)
    whole: set[int] = set()
    storages: dict[int, list[int]] = {}
    for number, tensor in enumerate(tensors):
        if _is_memory(tensor):
            storages.setdefault(_address(tensor), []).append(number)
        else:
            whole.add(len(live))
            seats[number] = Seat(len(live))
            live.append(tensor)
    for group in storages.values():
        _place(group, tensors, live, seats)
    found = [seat for seat in seats if seat is not None]
    shared = [number for number, seat in enumerate(found) if live[seat.piece] is not tensors[number]]
    return Pieces(live, found, frozenset(whole), shared)


def _is_memory(t: torch.Tensor) -> bool:
    """Whether it is an extent of bytes, that can be described and copied as such."""
    if t.layout is not _STRIDED or t.is_quantized or t.is_nested or t.is_conj() or t.is_neg():
        return False
    return type(t).__torch_dispatch__ in (torch.Tensor.__torch_dispatch__, _no_dispatch)


_no_dispatch = torch._C._disabled_torch_dispatch_impl


def _place(
    group: list[int], tensors: list[torch.Tensor], live: list[torch.Tensor], seats: list[Seat | None]
) -> None:
    """Pieces for the tensors of one storage: connected bytes are one, and bytes of nobody are left out."""
    for stretch in _stretches(group, tensors):
        members = [tensors[number] for number in stretch]
        if not _alike(members) and _in_one_run(members):
            start = _span(members[0])[0]
            for number in stretch:
                seats[number] = _seat(tensors[number], len(live), start)
            live.append(_bytes(members[0], start, max(_span(member)[1] for member in members)))
            continue
        for number in stretch:
            _place_alone(number, stretch, tensors, live, seats)


def _place_alone(
    number: int,
    stretch: list[int],
    tensors: list[torch.Tensor],
    live: list[torch.Tensor],
    seats: list[Seat | None],
) -> None:
    """A tensor as a piece of its own, unless the same extent was met already."""
    tensor = tensors[number]
    for other in stretch[: stretch.index(number)]:
        if _alike([tensors[other], tensor]):
            seats[number] = seats[other]
            return
    single = unrepeated(tensor)
    if writes_each_once(single):
        repeats = single is not tensor
        seats[number] = (
            Seat(len(live), 0, tuple(tensor.shape), tensor.stride()) if repeats else Seat(len(live))
        )
        live.append(single)
        return
    start, stop = _span(tensor)
    if covered([extent_of(tensor)]).nbytes != stop - start:
        shape, strides = list(tensor.shape), list(tensor.stride())
        raise TensafeError(
            f"a tensor of shape {shape} with strides {strides} overlaps itself and leaves gaps: "
            "take the snapshot of the tensor that it is a view of"
        )
    seats[number] = _seat(tensor, len(live), start)
    live.append(_bytes(tensor, start, stop))


def unrepeated(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with dimensions of stride 0 (`expand`) at size 1; the same object where it has none."""
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if size > 1 and stride == 0:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _in_one_run(members: list[torch.Tensor]) -> bool:
    """Whether they cover a run of bytes without a gap, at whole elements from its start."""
    start, reached = _span(members[0])[0], _span(members[0])[0]
    for member in members:
        first, stop = _span(member)
        if (first - start) % member.itemsize:
            return False
        if stop - first == member.nbytes and writes_each_once(member):
            if first > reached:
                return False
            reached = max(reached, stop)
    return reached >= max(_span(member)[1] for member in members)


def _alike(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether all of them are one and the same extent."""
    first = tensors[0]
    return all(
        t.dtype == first.dtype
        and t.shape == first.shape
        and t.stride() == first.stride()
        and t.storage_offset() == first.storage_offset()
        for t in tensors[1:]
    )


def writes_each_once(tensor: torch.Tensor) -> bool:
    """Whether no two elements are one in memory."""
    if tensor.is_contiguous():
        return True
    reached = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1:
            if stride <= reached:
                return False
            reached += stride * (size - 1)
    return True


def _stretches(group: list[int], tensors: list[torch.Tensor]) -> list[list[int]]:
    """Tensors of one storage by connected stretches of bytes."""
    found: list[list[int]] = []
    reached = -1
    for number in sorted(group, key=lambda number: _span(tensors[number])):
        start, stop = _span(tensors[number])
        if start > reached:
            found.append([])
        found[-1].append(number)
        reached = max(reached, stop)
    return found


def _span(t: torch.Tensor) -> tuple[int, int]:
    """The first byte and the one behind the last."""
    start = int(t.storage_offset()) * t.itemsize
    if not t.numel():
        return start, start
    last = sum((size - 1) * stride for size, stride in zip(t.shape, t.stride(), strict=True))
    return start, start + (last + 1) * t.itemsize


def _seat(t: torch.Tensor, piece: int, start: int) -> Seat:
    offset = (int(t.storage_offset()) * t.itemsize - start) // t.itemsize
    return Seat(piece, offset, tuple(t.shape), t.stride(), t.dtype)


def _bytes(tensor: torch.Tensor, start: int, stop: int) -> torch.Tensor:
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return flat.set_(tensor.untyped_storage(), start, (stop - start,), (1,))


def seated(seat: Seat, saved: list[torch.Tensor]) -> torch.Tensor:
    """The copy of a tensor, as a view into the copy of its piece."""
    piece = saved[seat.piece]
    if seat.dtype is None:
        return piece.expand(seat.shape) if seat.strides else piece
    usable = piece[: piece.numel() // seat.dtype.itemsize * seat.dtype.itemsize].view(seat.dtype)
    return usable.as_strided(seat.shape, seat.strides, int(usable.storage_offset()) + seat.offset)


def byte_runs(live: torch.Tensor, saved: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The bytes under two tensors that overlap themselves; None where they do so differently."""
    if live.stride() != saved.stride():
        return None
    return _bytes(live, *_span(live)), _bytes(saved, *_span(saved))


def is_unwritten(live: torch.Tensor, saved: torch.Tensor) -> bool:
    """Whether a copy-on-write clone and its source still are one memory, so that nothing is to be written."""
    if live.layout is not _STRIDED or not (is_copy_on_write(saved) and is_copy_on_write(live)):
        return False
    address = address_of(live)
    return (
        address is not None
        and address == address_of(saved)
        and live.storage_offset() == saved.storage_offset()
    )


def room_for(live: torch.Tensor, host: bool) -> torch.Tensor:
    """Memory for the copy of a piece; pinned host memory for what lies on CUDA, if that is asked for."""
    if host and live.is_cuda:
        return torch.empty(live.shape, dtype=live.dtype, pin_memory=True)
    new = torch.empty_like(live, requires_grad=False)
    if new.nbytes >= LARGE_NBYTES and new.is_cpu:
        on_huge_pages(new)
    return new


def lazily(live: torch.Tensor) -> torch.Tensor | None:
    """A copy-on-write clone; None where somebody may write past it, or torch refuses.

    A storage that was handed out (`.numpy()`, DLPack) can no longer be resized. Shared, mapped and foreign
    memory (`torch.from_numpy`) is refused by torch itself.
    """
    if not live.untyped_storage().resizable():
        return None
    try:
        return torch._lazy_clone(live)
    except (RuntimeError, NotImplementedError):
        return None


def all_lazily(live: list[torch.Tensor], storages: Storages | None) -> list[torch.Tensor] | None:
    """Copy-on-write clones of all of them; None where `lazily` must look at each."""
    if storages is None or not all_give(storages, torch.UntypedStorage.resizable, True):
        return None
    try:
        with below_autograd():
            return list(map(torch._lazy_clone, live))
    except (RuntimeError, NotImplementedError):
        return None


def all_cloned(live: list[torch.Tensor]) -> list[torch.Tensor] | None:
    """Copies of all of them, in few calls; None where one is large, not on the CPU or of a rare kind."""
    if not all_give(live, _Tensor.is_cpu, True) or max(map(_nbytes, live), default=0) >= LARGE_NBYTES:
        return None
    try:
        return clone_all(live)
    except (RuntimeError, NotImplementedError):
        return None


def copy_all(targets: list[torch.Tensor], sources: list[torch.Tensor]) -> None:
    """Copy each source into its target, of whatever kind the program's tensors are."""
    apart = [t.is_inference() or t.is_conj() or t.is_neg() for t in targets]
    if any(apart):
        for target, source, is_apart in zip(targets, sources, apart, strict=True):
            if is_apart:
                with torch.inference_mode(target.is_inference()), torch.no_grad():
                    target.copy_(source)
        targets = [target for target, is_apart in zip(targets, apart, strict=True) if not is_apart]
        sources = [source for source, is_apart in zip(sources, apart, strict=True) if not is_apart]
    copy_batch(targets, sources)


def copy_batch(targets: list[torch.Tensor], sources: list[torch.Tensor]) -> None:
    """Copy in one call; from and to pinned memory without a wait for each."""
    if not targets:
        return
    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):
        torch._foreach_copy_(targets, sources)
        return
    torch._foreach_copy_(targets, sources, non_blocking=True)
    torch.cuda.synchronize()
