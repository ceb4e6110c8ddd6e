"""Tensors of equal content in different memory: the only place that reads elements."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterable

import torch

from tensafe.aliases.allocations import Allocation, Piece
from tensafe.memory import from_torch

Names = dict[int, tuple[str, ...]]
Key = tuple[str, tuple[int, ...]]


def groups(homes: Iterable[Allocation], names: Names) -> tuple[tuple[str, ...], ...]:
    """The names of tensors with the same bytes, largest first; reads those of equal shape and dtype."""
    alike: dict[Key, dict[tuple[int, object], Piece]] = {}
    for place, home in enumerate(homes):
        for piece in home.pieces:
            if piece.part.extent.numel and piece.part.device != "meta":
                key = (piece.part.dtype, piece.part.extent.shape)
                alike.setdefault(key, {}).setdefault((place, piece.extent), piece)
    found: list[tuple[int, tuple[str, ...]]] = []
    for candidates in alike.values():
        if len(candidates) > 1:
            found += _equal(list(candidates.values()), names)
    return tuple(group for _, group in sorted(found, key=lambda one: (-one[0], one[1])))


def _equal(pieces: list[Piece], names: Names) -> Iterable[tuple[int, tuple[str, ...]]]:
    by_content: dict[bytes, list[Piece]] = {}
    for piece in pieces:
        digest = _digest(piece)
        if digest is not None:
            by_content.setdefault(digest, []).append(piece)
    for group in by_content.values():
        if len(group) > 1:
            yield group[0].part.extent.nbytes, tuple(sorted(_name(piece, names) for piece in group))


def _name(piece: Piece, names: Names) -> str:
    name = names[id(piece.found.value)][0]
    return f"{name} ({piece.part.name})" if piece.part.name else name


def _digest(piece: Piece) -> bytes | None:
    part = piece.part
    if part.device == "cpu" and part.address is not None and part.extent.is_contiguous:
        own = (ctypes.c_char * part.extent.nbytes).from_address(part.address + part.extent.offset)
        return hashlib.blake2b(memoryview(own), digest_size=16).digest()
    return _digest_of_copy(piece)


def _digest_of_copy(piece: Piece) -> bytes | None:
    """Where elements do not lie in order, or not in this machine's memory: a copy is read instead."""
    value = piece.found.value
    if not isinstance(value, torch.Tensor):
        return _of_array(value) if not piece.part.name else None
    if piece.part.name or piece.part.note not in ("", "copy-on-write"):
        return None
    with torch._C.DisableTorchFunction(), torch.no_grad(), from_torch.unwatched():
        try:
            copy = torch.empty(value.shape, dtype=value.dtype, device="cpu").copy_(value.detach())
            copy = copy.resolve_conj().resolve_neg()
            data = (ctypes.c_char * copy.numel() * copy.element_size()).from_address(copy.data_ptr())
            return hashlib.blake2b(memoryview(data), digest_size=16).digest()
        except (RuntimeError, NotImplementedError):
            return None


def _of_array(value: object) -> bytes | None:
    array: object = value.tobytes() if hasattr(value, "tobytes") else None
    return hashlib.blake2b(array, digest_size=16).digest() if isinstance(array, bytes) else None
