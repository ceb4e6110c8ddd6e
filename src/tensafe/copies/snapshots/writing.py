"""Carries out a restore: tensors in place, each byte once where nothing moved, then plain values."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch

from tensafe.copies.snapshots.copies import Copies
from tensafe.copies.snapshots.matching import ChangedError, Matching
from tensafe.copies.snapshots.pieces import (
    Pieces,
    byte_runs,
    copy_all,
    is_unwritten,
    pieces_of,
    unrepeated,
    writes_each_once,
)
from tensafe.errors import TensafeError
from tensafe.memory.from_torch import is_copy_on_write

Write = tuple[torch.Tensor, torch.Tensor]


def tensor_writes(
    m: Matching, copies: Copies, paths: Callable[[], list[str]]
) -> tuple[list[Write], list[torch.Tensor]]:
    """What is copied into what, and the tensors whose version counters are to move besides."""
    live = m.now.tensors
    pieces = pieces_of(live)
    if _aligned(m, pieces, copies.pieces):
        writes = list(zip(pieces.live, copies.saved, strict=True))
        if copies.any_lazy:
            writes = [(one, saved) for one, saved in writes if not is_unwritten(one, saved)]
        return writes, [live[number] for number in pieces.shared]
    written: dict[Any, int] = {}
    writes, bumps = [], []
    names = paths()
    for number, other in m.pairs:
        path = names[number]
        one = live[other]
        extent = (id(one),)
        if one.layout is torch.strided and not one.is_nested:
            address = torch._C._storage_address(one)  # type: ignore[attr-defined]
            looks = one.dtype, one.is_conj(), one.is_neg()
            extent = (address, one.storage_offset(), one.shape, one.stride(), looks)  # type: ignore[assignment]
        if extent in written:
            _check_agreement(copies, written[extent], number, path)
            bumps.append(one)
        else:
            written[extent] = number
            writes.append(_one_write(one, number, copies, path))
    return writes, bumps


def _aligned(m: Matching, now: Pieces, before: Pieces) -> bool:
    """Whether the tensors lie in memory as they did."""
    return (
        len(m.pairs) == len(m.now.tensors)
        and all(number == other for number, other in m.pairs)
        and now.seats == before.seats
        and now.whole == before.whole
        and len(now.live) == len(before.live)
        and all(a.shape == b.shape for a, b in zip(now.live, before.live, strict=True))
    )


def _check_agreement(copies: Copies, first: int, second: int, path: str) -> None:
    if not torch.equal(copies.of(first), copies.of(second)):
        raise ChangedError(
            f"{path} is one tensor with another now, and they differed at the snapshot: nothing was restored"
        )


def _one_write(one: torch.Tensor, number: int, copies: Copies, path: str) -> Write:
    if one.layout is not torch.strided or writes_each_once(one):
        return one, copies.of(number)
    single = unrepeated(one)
    if writes_each_once(single):
        source = copies.of(number)
        for dim, size in enumerate(single.shape):
            source = source.narrow(dim, 0, size)
        return single, source
    runs = byte_runs(one, copies.of(number))
    if runs is None:
        raise ChangedError(
            f"{path} overlaps itself in another way than at the snapshot: nothing was restored"
        )
    return runs


def gradient_writes(
    pairs: Iterable[tuple[torch.Tensor, torch.Tensor | None]],
) -> tuple[list[Write], list[Any]]:
    """For tensors and their gradients at the snapshot: copies to make, and `.grad`s to set."""
    writes: list[Write] = []
    puts: list[Any] = []
    for live, gradient in pairs:
        if not live.is_leaf:
            continue
        now = live.grad
        if gradient is None:
            if now is not None:
                puts.append(partial(setattr, live, "grad", None))
        elif now is not None and now.layout is gradient.layout and now.shape == gradient.shape:
            writes.append((now, gradient))
        else:
            puts.append(partial(setattr, live, "grad", gradient.to(live.device, copy=True)))
    return writes, puts


def refuse_frozen(writes: list[Write], m: Matching, paths: Callable[[], list[str]]) -> None:
    """Raise for storages that refuse writers, before the first is written."""
    for live, _ in writes:
        if live.layout is not torch.strided or is_copy_on_write(live):
            continue
        try:
            live.data_ptr()
        except RuntimeError:
            known = [number for number, other in m.pairs if torch._C._is_alias_of(m.now.tensors[other], live)]  # type: ignore[attr-defined]
            path = paths()[known[0]] if known else "a gradient"
            raise ChangedError(
                f"{path} refuses writes, as after tensafe.freeze: nothing was restored; thaw it by a clone"
            ) from None


def carry_out(m: Matching, writes: list[Write], bumps: list[torch.Tensor], puts: list[Any]) -> None:
    """Do what was collected; what runs code of others comes first, and is undone if it fails.

    An interrupt (Ctrl-C) on the way is raised once all is done: half a state is of no use.
    """
    _load_foreign(m.foreign)
    bumps = [one for one in [*bumps, *m.outer] if not one.is_inference()]
    try:
        _write_all(writes, bumps, puts)
    except KeyboardInterrupt:
        _write_all(writes, bumps, puts)
        raise


def _write_all(writes: list[Write], bumps: list[torch.Tensor], puts: list[Any]) -> None:
    copy_all([live for live, _ in writes], [saved for _, saved in writes])
    if bumps:
        torch.autograd.graph.increment_version(bumps)
    for put in puts:
        put()


def _load_foreign(foreign: list[tuple[Any, Any]]) -> None:
    done: list[tuple[Any, Any]] = []
    for live, state in foreign:
        done.append((live, copy.deepcopy(live.state_dict())))
        try:
            live.load_state_dict(state)
        except BaseException as error:
            for other, before in reversed(done):
                other.load_state_dict(before)
            if not isinstance(error, Exception):
                raise
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise TensafeError(
                f"{type(live).__name__}.load_state_dict refused its state; nothing was restored: {reason}"
            ) from error
