"""Parts of tensors and arrays brought together by the memory they lie in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from tensafe.aliases.attributes import kind_name
from tensafe.aliases.contents import is_storage_type
from tensafe.aliases.walk import Found
from tensafe.memory import Extent, Part, from_numpy, from_torch

MAPPABLE_NBYTES = 4096
Name = Callable[[object], str | None]


@dataclass(eq=False)
class Piece:
    """One part of something that was found, with its extent counted from the start of the allocation."""

    found: Found
    part: Part
    extent: Extent


@dataclass(eq=False)
class Allocation:
    """Memory that was allocated at once: one storage, or several over one buffer."""

    device: str
    address: int | None
    nbytes: int
    is_lazy: bool  # copy-on-write: it may share its bytes with another until one of them is written
    pieces: list[Piece] = field(default_factory=list)
    owner: Any = None  # the storage, the array


def parts_of(value: Any, kind: str) -> list[Part]:
    """The parts of anything that a walk finds; raises `from_torch.NoStorageError`."""
    if is_storage_type(type(value)):
        return [_storage_part(value)]
    return from_numpy.parts_of(value) if from_numpy.is_array(value) else from_torch.parts_of(value)


def _storage_part(storage: torch.UntypedStorage) -> Part:
    with from_torch.unwatched(), torch._C.DisableTorchFunction():
        over = torch.empty(0, dtype=torch.uint8, device=storage.device)
        over.set_(storage)
        return from_torch.parts_of(over)[0]


def beside(value: object, found: Iterable[Found]) -> Iterator[Found]:
    """What may share memory with a tensor: all but plain tensors whose storage is another one of torch's own.

    Storages that PyTorch allocated share no byte, so that most tensors need no closer look.
    """
    try:
        own = {id(part.storage): part.storage for part in parts_of(value, "")}
    except Exception:  # told later, in words
        own = {}
    apart = bool(own) and all(map(_is_own_allocation, own.values()))
    for one in found:
        storage = _plain_storage(one.value) if apart and one.value is not value else None
        if storage is None or id(storage) in own or not _is_own_allocation(storage):
            yield one


def _is_own_allocation(storage: object) -> bool:
    kind = type(storage)
    return kind is torch.UntypedStorage and storage.device.type == "cpu" and storage.resizable()  # type: ignore[attr-defined]


def _plain_storage(value: Any) -> torch.UntypedStorage | None:
    """The storage of a tensor that is nothing but strided elements, None for all else."""
    kind = type(value)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        return None
    if value.layout is not torch.strided or value.is_nested:
        return None
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return None
    try:
        storage: torch.UntypedStorage = value.untyped_storage()
        return storage
    except (RuntimeError, NotImplementedError):
        return None


def allocations(found: Iterable[Found], not_seen: list[str], name: Name | None = None) -> list[Allocation]:
    """All parts, those of one storage or of one range of addresses together."""
    by_owner: dict[int, Allocation] = {}
    for one in found:
        try:
            parts = parts_of(one.value, one.kind)
        except from_torch.NoStorageError as error:
            known = name(one.value) if name is not None else None
            not_seen.append(f"`{known}`: {error}" if known else str(error))
            continue
        except Exception as error:  # a subclass that does not answer what every tensor answers
            not_seen.append(
                f"a {kind_name(type(one.value))} raises {kind_name(type(error))} when asked for its memory"
            )
            continue
        for part in parts:
            _place(by_owner, one, part)
    return list(_merged(by_owner.values()))


def _place(by_owner: dict[int, Allocation], found: Found, part: Part) -> None:
    home = by_owner.get(id(part.storage))
    if home is None:
        lazy = part.note == "copy-on-write"
        home = Allocation(part.device, part.address, part.storage_nbytes, lazy, owner=part.storage)
        by_owner[id(part.storage)] = home
    elif home.address is None:
        home.address = part.address
    home.pieces.append(Piece(found, part, part.extent))


def _merged(homes: Iterable[Allocation]) -> Iterator[Allocation]:
    """Storages whose addresses overlap are one allocation: two `from_numpy` over one buffer."""
    placed: list[Allocation] = []
    for home in homes:
        if home.address is None or home.is_lazy:
            yield home
        else:
            placed.append(home)
    placed.sort(key=lambda home: (home.device, home.address, -home.nbytes))
    last: Allocation | None = None
    for home in placed:
        if last is not None and last.device == home.device and _meet(last, home):
            _join(last, home)
            continue
        if last is not None:
            yield last
        last = home
    if last is not None:
        yield last


def _meet(first: Allocation, second: Allocation) -> bool:
    assert first.address is not None
    assert second.address is not None
    return second.address < first.address + first.nbytes or second.address == first.address


def _join(first: Allocation, second: Allocation) -> None:
    assert first.address is not None
    assert second.address is not None
    distance = second.address - first.address
    first.nbytes = max(first.nbytes, distance + second.nbytes)
    first.pieces += [Piece(p.found, p.part, p.extent.moved(distance)) for p in second.pieces]
