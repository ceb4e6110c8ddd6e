"""Who owns memory that PyTorch did not allocate, as far as that can be seen without reading it."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import torch

from tensafe.aliases.allocations import Allocation
from tensafe.aliases.attributes import kind_name
from tensafe.aliases.contents import is_array_type, is_storage_type
from tensafe.aliases.mappings import Mappings

_HEADER = bytes.__basicsize__ - 1  # of a `bytes` object, before its first byte
_WORD = ctypes.sizeof(ctypes.c_void_p)


def is_foreign(storage: object) -> bool:
    """Whether a storage looks into memory of others: `from_numpy`, `frombuffer`, DLPack, a mapped file."""
    return is_storage_type(type(storage)) and not torch.UntypedStorage.resizable(storage)  # type: ignore[arg-type]


def has_array(allocation: Allocation) -> bool:
    """Whether an array over this memory was found."""
    return any(is_array_type(type(piece.found.value)) for piece in allocation.pieces)


def is_bytes(allocation: Allocation, mappings: Mappings) -> bool:
    """Whether a `bytes` object holds this memory: its header then lies right before, and says its size.

    Asked of foreign memory only, and where the system tells that the place of the header can be read.
    """
    address = allocation.address
    if allocation.device != "cpu" or address is None or not is_foreign(allocation.owner):
        return False
    start = mappings.at(address - _HEADER)
    if start is None or start.stop < address or not start.permissions.startswith("r"):
        return False
    kind = ctypes.c_void_p.from_address(address - _HEADER + object.__basicsize__ - _WORD).value
    size = ctypes.c_ssize_t.from_address(address - _HEADER + object.__basicsize__).value
    return kind == id(bytes) and size >= allocation.nbytes


def said_owner(base: Any) -> str:
    """What an array without a named base looks into."""
    if kind_name(type(base)) == "DummyArray":  # of `numpy.lib.stride_tricks`
        base = base.base
    with contextlib.suppress(ValueError):  # released
        while type(base) is memoryview:
            base = base.obj
    if is_array_type(type(base)):
        return "an array without a name"
    name = kind_name(type(base))
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
