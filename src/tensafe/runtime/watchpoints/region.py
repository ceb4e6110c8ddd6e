"""One watched piece of memory: where it lies, what it holds, who wants to hear of writes into it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tensafe.facts import Site
from tensafe.memory.extent import Extent
from tensafe.memory.part import Part
from tensafe.runtime.graphs.saved import _same_bytes

COMPARED_NBYTES = 16 << 20
"""Up to this size the contents are kept, to tell writes that no torch call of the program made."""

KEY = "_tensafe_watched"


@dataclass(frozen=True, slots=True)
class WriteSeen:
    """One write into watched memory.

    Attributes:
        name: what is watched.
        op: PyTorch's name of the call, "Tensor.add_"; "" where no call that tensafe sees made the write.
        site: the line that wrote, or at which the change was noticed: `path`, `line`; None if unknown.
        through: the tensor through which it went: "itself", "`first`, a view of shape [2], made at line 7".
        note: what else is known; may be "".
    """

    name: str  # what is watched
    op: str  # PyTorch's name, `Tensor.add_`
    site: Site | None  # the line that wrote, or at which the change was noticed
    through: str  # the tensor through which it went: "itself", "`first`, a view of shape [2], made at line 7"
    note: str = ""


OnWrite = Callable[[WriteSeen], None]


class Region:
    """Watched elements; lives on the storage's own Python object and keeps nothing of the program alive."""

    def __init__(self, name: str, owner: Any, part: Part, on_write: OnWrite) -> None:
        self.name = name
        self.on_write = on_write
        self.owner: Callable[[], Any] = weakref.ref(owner)
        self.root: Callable[[], Any] = weakref.ref(_root_of(owner))
        self.last: Site | None = None
        self.move(part)

    def move(self, part: Part) -> None:
        """Watch this memory from now on."""
        self.extent: Extent = part.extent
        self.address = part.address
        self.storage: Callable[[], Any] = _weak(part.storage)
        is_tensor = isinstance(part.storage, torch.UntypedStorage) and isinstance(self.owner(), torch.Tensor)
        self._dtype = getattr(torch, part.dtype) if is_tensor else None
        self._snapshot: Any = None
        self.take_snapshot()

    @property
    def is_exposed(self) -> bool:
        """Whether another storage may lie over the same memory: somebody has its pointer."""
        storage = self.storage()
        return self.address is not None and not (
            isinstance(storage, torch.UntypedStorage) and storage.resizable()
        )

    def take_snapshot(self) -> None:
        """Keep the contents, to be compared later."""
        self._snapshot = None
        if self.extent.nbytes <= COMPARED_NBYTES:
            live = self._live()
            if isinstance(live, torch.Tensor):
                self._snapshot = torch._C.TensorBase.clone(live)
            elif live is not None:
                self._snapshot = live.copy()

    @property
    def is_compared(self) -> bool:
        return self._snapshot is not None

    def differs(self) -> bool:
        """Whether the contents changed since the snapshot."""
        live = self._live()
        if live is None or self._snapshot is None:
            return False
        if isinstance(live, torch.Tensor):
            return not _same_bytes(self._snapshot, live)
        return bool(live.tobytes() != self._snapshot.tobytes())

    def _live(self) -> Any:
        """The watched elements as a tensor, or the array; None where there is nothing to compare."""
        owner = self.owner()
        if self._dtype is None:
            return owner
        storage = self.storage()
        if storage is None or self.extent.stop > storage.nbytes() or storage.device.type == "meta":
            return None
        size = self.extent.itemsize
        strides = [stride // size for stride in self.extent.strides]
        empty = torch.empty(0, dtype=self._dtype, device=storage.device)
        base: Any = torch._C.TensorBase
        return base.set_(empty, storage, self.extent.offset // size, list(self.extent.shape), strides)


def _root_of(owner: Any) -> Any:
    """The tensor that a view looks into."""
    base = owner._base if isinstance(owner, torch.Tensor) and not owner.is_inference() else None
    return owner if base is None else base


def _weak(storage: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(storage)
    except TypeError:  # bytes, a mapped file: what the array itself keeps alive
        return lambda: None
