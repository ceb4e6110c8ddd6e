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
    A subclass is not asked anything.
    """
    numpy = sys.modules["numpy"]
    if issubclass(type(array), numpy.ma.MaskedArray):
        mask = numpy.ndarray.__getattribute__(array, "_mask")
        if is_array(mask) and mask.ndim == array.ndim:
            return [_part(array, "data"), _part(mask, "mask")]
    return [_part(array, "")]


def _part(array: Any, name: str) -> Part:
    owner, address, nbytes = _owner(_root(array))
    extent = _extent(array)
    dtype = str(_own("dtype", array))
    return Part(name, extent.moved(-address), owner, nbytes, "cpu", address, dtype, _note(array, owner))


def _own(name: str, array: Any) -> Any:
    """An attribute as `numpy.ndarray` itself answers it, whatever a subclass says."""
    return getattr(sys.modules["numpy"].ndarray, name).__get__(array)


def _extent(array: Any) -> Extent:
    """The extent by address."""
    address = _own("__array_interface__", array)["data"][0]
    return Extent(address, _own("shape", array), _own("strides", array), _own("itemsize", array))


def _root(array: Any) -> Any:
    """The last array of the chain of views; `as_strided` puts an object of its own between two."""
    while True:
        base = _own("base", array)
        if type(base).__name__ == "DummyArray" and type(base).__module__.startswith("numpy."):
            base = base.base
        if not is_array(base):
            return array
        array = base


def _owner(root: Any) -> tuple[Any, int, int]:
    """What owns the memory, the address of its first byte, and its bytes."""
    extent = _extent(root)
    base = _own("base", root)
    if base is None:
        return root, extent.start, extent.stop - extent.start
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(base, torch.Tensor):
        storage = base.untyped_storage()
        return storage, extent.offset - base.storage_offset() * base.element_size(), storage.nbytes()
    whole = _whole(base)
    if whole is not None:
        return base, _extent(whole).offset, whole.nbytes
    return base, extent.start, extent.stop - extent.start


def _whole(buffer: object) -> Any:
    """All bytes of a buffer (`bytes`, `mmap`, `memoryview`) as an array, None when it gives no buffer."""
    numpy = sys.modules["numpy"]
    try:
        return numpy.frombuffer(buffer, dtype=numpy.uint8)
    except (TypeError, ValueError, BufferError, AttributeError):
        return None


def _note(array: Any, owner: object) -> str:
    numpy = sys.modules["numpy"]
    if issubclass(type(array), numpy.memmap) or type(owner).__name__ == "mmap":
        return "memory-mapped"
    return "" if _own("flags", array).writeable else "read-only"
