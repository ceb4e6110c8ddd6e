"""Memory by its address: of tensors, of buffers, and copies between the two."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from tensafe.copies.huge_pages import ask_for_huge_pages

_const_data_ptr = getattr(torch.Tensor, "const_data_ptr", None)
move = ctypes.memmove


def address_of(tensor: torch.Tensor) -> int | None:
    """The address of the first element, to read from; None where reading it would copy or is refused.

    A copy-on-write tensor stays one, and a frozen one may be read, where torch has `const_data_ptr`.
    """
    if _const_data_ptr is not None:
        return int(_const_data_ptr(tensor))
    if torch._C._is_cow_tensor(tensor):  # type: ignore[attr-defined]
        return None
    try:
        return tensor.data_ptr()
    except RuntimeError:  # frozen
        return None


class _Buffer(ctypes.Structure):
    """CPython's `Py_buffer`, part of its stable interface."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


def buffer_address(view: memoryview) -> int:
    """Where the first byte of a contiguous buffer lies; valid as long as the view is held."""
    found = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(found), 0)
    address = found.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(found))
    return address


def exported(address: int, nbytes: int, owner: object) -> memoryview:
    """Memory as a writable buffer; whoever holds the buffer, or anything made from it, holds the owner."""
    return memoryview(holder(address, nbytes, owner)).cast("B")


def holder(address: int, nbytes: int, owner: object) -> Any:
    """The object below `exported`: for those who keep a buffer open, as pickle's do.

    A memoryview that others keep open, in a garbage cycle, crashes CPython 3.11; this object does not.
    """
    array: Any = (ctypes.c_ubyte * nbytes).from_address(address)
    array._owner = owner
    return array


def fresh_bytes(nbytes: int) -> tuple[bytes, int]:
    """Zeroed bytes and their address, to be filled before anybody sees them; large ones in huge pages.

    The zeros cost nothing, as the pages come from the system untouched.
    """
    whole = bytes(nbytes)
    address = buffer_address(memoryview(whole))
    ask_for_huge_pages(address, nbytes)
    return whole, address


def flat_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's whole storage as bytes, on its device."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def as_bytes(address: int, nbytes: int) -> torch.Tensor:
    """Memory as a tensor that does not keep it alive."""
    return torch.frombuffer(exported(address, nbytes, None), dtype=torch.uint8)
