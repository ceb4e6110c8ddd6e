"""One strided piece of memory of a tensor or array, with the storage that it lies in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tensafe.memory.extent import Extent


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A strided tensor is one part with the name ""; a sparse one has `indices` and `values`, and so on.

    `storage` is the Python object that owns the memory (`untyped_storage()`, the array at the root of the
    views); two parts with the same object lie in the same storage. `address` is that of the storage's byte 0,
    None where there is none (meta) or it cannot be read without changing something.
    """

    name: str
    extent: Extent  # counted from the start of the storage
    storage: Any = field(repr=False)  # its own repr lists every byte
    storage_nbytes: int
    device: str
    address: int | None
    dtype: str  # "float32", without "torch."
    note: str = ""  # "copy-on-write", "meta: no memory behind it", ... ; "" for plain memory

    @property
    def storage_key(self) -> tuple[str, int]:
        """Equal for two parts that lie in the same memory, as far as whole storages go."""
        return ("address", self.address) if self.address else ("object", id(self.storage))
