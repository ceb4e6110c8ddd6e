"""The memory map of live objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import FrameType

import torch

from tensafe.aliases import duplicates
from tensafe.aliases.allocations import MAPPABLE_NBYTES, Allocation, Piece, allocations
from tensafe.aliases.frames import names_of
from tensafe.aliases.mappings import Mappings
from tensafe.aliases.walk import Found, Walk
from tensafe.memory import MemoryMap, NamedTensor, Storage, from_torch


def map_objects(values: Sequence[object], frame: FrameType | None = None, hash: bool = False) -> MemoryMap:
    """The map of everything these objects hold; their names are those of the frame's variables.

    Reads no element, unless `hash` asks for `duplicates`: then the bytes of tensors of equal shape and dtype.
    """
    with torch._C.DisableTorchFunction(), from_torch.unwatched():
        return _mapped(values, frame, hash)


def _mapped(values: Sequence[object], frame: FrameType | None, hash: bool) -> MemoryMap:
    roots = names_of(values, frame)
    walk = Walk().go(zip(roots, values, strict=True))
    names = {id(one.value): walk.names(one) for one in walk.found.values()}
    homes = allocations(walk.found.values(), walk.not_seen)
    homes.sort(key=lambda home: (-home.nbytes, min(names[id(piece.found.value)] for piece in home.pieces)))
    mappings = Mappings()
    storages = [_storage(f"storage {place}", home, names, mappings) for place, home in enumerate(homes, 1)]
    equal = duplicates.groups(homes, names) if hash else ()
    return MemoryMap(", ".join(roots), tuple(storages), equal, tuple(walk.not_seen))


Names = dict[int, tuple[str, ...]]


def _storage(label: str, home: Allocation, names: Names, mappings: Mappings) -> Storage:
    tensors = [_named(piece, names) for piece in home.pieces]
    tensors.sort(key=lambda tensor: (tensor.extent.start, -tensor.extent.nbytes, tensor.names))
    return Storage(label, home.nbytes, home.device, tuple(tensors), tuple(notes_of(home, mappings)))


def _named(piece: Piece, names: Names) -> NamedTensor:
    found, part = piece.found, piece.part
    own = names[id(found.value)]
    itemsize = part.extent.itemsize or 1
    return NamedTensor(
        tuple(f"{name} ({part.name})" for name in own) if part.name else own,
        part.extent.shape,
        tuple(stride // itemsize for stride in part.extent.strides),
        part.dtype,
        piece.extent,
        found.kind,
        tuple(_tensor_notes(found, piece)),
    )


def _tensor_notes(found: Found, piece: Piece) -> Iterable[str]:
    if found.more:
        yield f"and {found.more} more names"
    if isinstance(found.value, torch.Tensor):
        with torch._C.DisableTorchFunctionSubclass():
            if found.kind != "parameter" and found.value.requires_grad:
                yield "requires grad"
            if found.value.is_conj():
                yield "conjugated"
            if found.value.is_neg():
                yield "negated"
    if piece.part.note in ("quantised", "read-only"):
        yield piece.part.note


def notes_of(home: Allocation, mappings: Mappings) -> Iterable[str]:
    """What is special about an allocation."""
    notes = dict.fromkeys(piece.part.note for piece in home.pieces)
    for note in notes:
        if note not in ("", "quantised", "read-only", "memory-mapped"):
            yield note
    mapping = mappings.at(home.address) if home.device == "cpu" and home.nbytes >= MAPPABLE_NBYTES else None
    if mapping is not None and mapping.note:
        yield mapping.note
    elif "memory-mapped" in notes:
        yield "memory-mapped"
    if isinstance(home.owner, torch.UntypedStorage) and home.device == "cpu":
        if home.owner.is_shared():
            yield "shared memory"
        if torch.cuda.is_initialized() and home.owner.is_pinned():
            yield "pinned"
