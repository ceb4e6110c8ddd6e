"""The memory map of live objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

import torch

from tensafe.aliases import duplicates
from tensafe.aliases.allocations import MAPPABLE_NBYTES, Allocation, Piece, allocations
from tensafe.aliases.contents import is_storage_type, is_tensor_type
from tensafe.aliases.frames import names_of
from tensafe.aliases.mappings import Mappings
from tensafe.aliases.steps import natural
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
    homes = allocations(walk.found.values(), walk.not_seen, walk.name)
    homes.sort(key=lambda home: (-home.nbytes, _first_name(home, names)))
    mappings = Mappings()
    _say_graphs(walk)
    storages = [_storage(f"storage {place}", home, names, mappings) for place, home in enumerate(homes, 1)]
    equal = duplicates.groups(homes, names) if hash else ()
    return MemoryMap(", ".join(roots), tuple(storages), equal, tuple(walk.not_seen))


def _say_graphs(walk: Walk) -> None:
    """A map shows what objects hold; what autograd holds for them is not among it."""
    own: Any = torch.Tensor
    requires_grad, is_leaf = own.requires_grad.__get__, own.is_leaf.__get__
    tensors = [one for one in walk.found.values() if is_tensor_type(type(one.value))]
    graphs = [one for one in tensors if requires_grad(one.value) and not is_leaf(one.value)]
    if graphs:
        name = walk.names(graphs[0])[0]
        more = f" and of {len(graphs) - 1:,} more" if len(graphs) > 1 else ""
        walk.not_seen.append(f"what the graph of `{name}`{more} keeps for backward is not in this map")


def _first_name(home: Allocation, names: Names) -> tuple[str | int, ...]:
    return natural(min(names[id(piece.found.value)] for piece in home.pieces)[0])


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
    if is_tensor_type(type(found.value)):
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
    if is_storage_type(type(home.owner)) and home.device == "cpu":
        if home.owner.is_shared():
            yield "shared memory"
        if torch.cuda.is_initialized() and home.owner.is_pinned():
            yield "pinned"
