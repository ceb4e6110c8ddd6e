"""Storages with everything that lies in them: what `memory_map()` and `tensafe inspect` give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tensafe.memory.covered import Covered, covered
from tensafe.memory.extent import Extent


@dataclass(frozen=True)
class NamedTensor:
    """A tensor (or one part of a sparse one) with every name that reaches it, the shortest first.

    Attributes:
        names: "model.fc.weight", "optimizer.state[model.fc.weight].exp_avg"; more than one where it is tied.
        shape: of the tensor, in elements.
        strides: in elements, as `Tensor.stride()` says.
        dtype: "float32", without "torch.".
        extent: where it lies, in bytes from the start of its storage.
        kind: "parameter", "buffer", "gradient", "optimizer state", "array" or "tensor".
        notes: "requires grad", "conjugated", "sparse: values" and the like.
    """

    names: tuple[str, ...]  # "model.fc.weight", "optimizer.state[model.fc.weight].exp_avg", "batch['x'][0]"
    shape: tuple[int, ...]  # of the tensor, in elements
    strides: tuple[int, ...]  # in elements, as `Tensor.stride()` says
    dtype: str  # "float32", without "torch."
    extent: Extent  # in bytes, from the start of its storage
    kind: str = "tensor"  # "parameter", "buffer", "gradient", "optimizer state", "array", "tensor"
    notes: tuple[str, ...] = ()  # "requires grad", "conjugated", "sparse: values", ...

    @property
    def name(self) -> str:
        """The shortest name."""
        return self.names[0]

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, as if each had its own."""
        return self.extent.nbytes


@dataclass(frozen=True)
class Storage:
    """One allocation, or one storage record of a file, and the tensors that look into it.

    Attributes:
        label: "storage 3"; in a file the key of its record, "data/3".
        nbytes: bytes that it takes.
        device: "cpu", "cuda:0", "meta".
        tensors: what lies in it, by offset, then by size.
        notes: "shared memory", "pinned", "copy-on-write", "memory-mapped: …".
    """

    label: str  # "storage 3"; in a file the key of its record, "data/3"
    nbytes: int
    device: str
    tensors: tuple[NamedTensor, ...]  # by offset, then by size, the largest first
    notes: tuple[str, ...] = ()  # "shared memory", "pinned", "copy-on-write", "memory-mapped", "meta: ..."

    @cached_property
    def covered(self) -> Covered:
        """The bytes that some tensor reaches."""
        return covered([tensor.extent for tensor in self.tensors])

    @property
    def used_nbytes(self) -> int:
        """Bytes that at least one tensor reaches."""
        return min(self.covered.nbytes, self.nbytes)

    @property
    def dead_nbytes(self) -> int:
        """Bytes that no named tensor reaches, and that stay allocated all the same."""
        return max(0, self.nbytes - self.used_nbytes)

    @property
    def shared_nbytes(self) -> int:
        """Bytes that two or more of the tensors reach."""
        return min(self.covered.shared_nbytes, self.nbytes)

    @property
    def logical_nbytes(self) -> int:
        """What its tensors would take, each stored alone."""
        return sum(tensor.nbytes for tensor in self.tensors)


@dataclass(frozen=True)
class MemoryMap:
    """Storages, the largest first; every total counts a byte once, and bytes on the meta device not at
    all.
    """

    title: str  # "model, optimizer"; in a file its name
    storages: tuple[Storage, ...]
    duplicates: tuple[tuple[str, ...], ...] = ()  # names of equal content in different memory, when asked for
    not_seen: tuple[str, ...] = ()  # what could not be looked into, and why
    facts: Mapping[str, str] = field(default_factory=dict)  # of a file: format, torch version, …

    @property
    def _allocated(self) -> list[Storage]:
        return [storage for storage in self.storages if storage.device != "meta"]

    @cached_property
    def logical_nbytes(self) -> int:
        """What the tensors would take, each stored alone."""
        return sum(storage.logical_nbytes for storage in self._allocated)

    @cached_property
    def stored_nbytes(self) -> int:
        """What all storages take, each counted once."""
        return sum(storage.nbytes for storage in self._allocated)

    @cached_property
    def dead_nbytes(self) -> int:
        """Bytes that stay allocated and that no tensor reaches."""
        return sum(storage.dead_nbytes for storage in self._allocated)

    @cached_property
    def shared_nbytes(self) -> int:
        """Bytes that two or more tensors reach."""
        return sum(storage.shared_nbytes for storage in self._allocated)

    @cached_property
    def tensor_count(self) -> int:
        """How many tensors there are, a tied one once."""
        return sum(len(storage.tensors) for storage in self.storages)

    @property
    def ties(self) -> tuple[NamedTensor, ...]:
        """Tensors under more than one name."""
        return tuple(
            tensor for storage in self.storages for tensor in storage.tensors if len(tensor.names) > 1
        )

    @property
    def pinned(self) -> tuple[Storage, ...]:
        """Storages that small views keep alive: more than half of them dead, the most dead bytes first."""
        found = [storage for storage in self.storages if storage.dead_nbytes * 2 > storage.nbytes]
        return tuple(sorted(found, key=lambda storage: -storage.dead_nbytes))
