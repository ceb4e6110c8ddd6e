"""The memory behind a NumPy array, read from its array interface; NumPy itself is never imported."""

from __future__ import annotations

import sys
from typing import Any

from tensafe.memory.extent import Extent
from tensafe.memory.part import Part


def is_array(value: object) -> bool:
    """Whether this is a NumPy array; False, at no cost, where NumPy was never imported."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(type(value), numpy.ndarray)  # asks no `__class__` property


def parts_of(array: Any) -> list[Part]:
    """The array as one part, a masked array as `data` and `mask`.

    Its storage is the object at the end of the chain of `base`: an array, a buffer, a mapped file, a tensor.
    """
    mask = getattr(array, "_mask", None)
    if mask is not None and is_array(mask) and mask.ndim == array.ndim:
        numpy = sys.modules["numpy"]
        return [_part(array.view(numpy.ndarray), "data"), _part(mask, "mask")]
    return [_part(array, "")]


def _part(array: Any, name: str) -> Part:
    interface = array.__array_interface__
    root = _root(array)
    owner, address, nbytes = _owner(root)
    itemsize = array.itemsize
    extent = Extent(interface["data"][0] - address, array.shape, array.strides, itemsize)
    return Part(name, extent, owner, nbytes, "cpu", address, str(array.dtype), _note(array, owner))


def _root(array: Any) -> Any:
    """The last array of the chain of views."""
    while is_array(array.base):
        array = array.base
    return array


def _owner(root: Any) -> tuple[Any, int, int]:
    """What owns the memory, the address of its first byte, and its bytes."""
    own = root.__array_interface__["data"][0]
    base = root.base
    if base is None:
        return root, own, root.nbytes
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(base, torch.Tensor):
        storage = base.untyped_storage()
        return storage, own - base.storage_offset() * base.element_size(), storage.nbytes()
    whole = _whole(base)
    if whole is not None:
        return base, whole.__array_interface__["data"][0], whole.nbytes
    return base, own, root.nbytes


def _whole(buffer: object) -> Any:
    """All bytes of a buffer (`bytes`, `mmap`, `memoryview`) as an array, None when it gives no buffer."""
    numpy = sys.modules["numpy"]
    try:
        return numpy.frombuffer(buffer, dtype=numpy.uint8)
    except (TypeError, ValueError, BufferError, AttributeError):
        return None


def _note(array: Any, owner: object) -> str:
    numpy = sys.modules["numpy"]
    if isinstance(array, numpy.memmap) or type(owner).__name__ == "mmap":
        return "memory-mapped"
    return "" if array.flags.writeable else "read-only"
