"""Whether two tensors or arrays share memory, which bytes, and through which elements."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from tensafe.errors import TensafeError
from tensafe.memory import Extent, Part, Shared, Undecided, from_numpy, meet, meet_itself
from tensafe.memory.overlap import STEPS, do_meet

if TYPE_CHECKING:
    import numpy
    import torch

    Memory = torch.Tensor | numpy.ndarray[Any, Any]


class Side(NamedTuple):
    """One of two tensors that share a byte: where it lies in the storage, and its element with that byte.

    Attributes:
        extent: where the tensor lies, in bytes from the start of the storage.
        element: its index in the tensor, or in the part of it.
        part: "values" of a sparse tensor, "_local_tensor" of a DTensor; "" for the tensor itself.
    """

    extent: Extent  # in bytes, from the start of the storage
    element: tuple[int, ...]  # its index in the tensor, or in the part of it
    part: str = ""  # "values" of a sparse tensor, "_local_tensor" of a DTensor; "" for the tensor itself

    def __str__(self) -> str:
        part = f".{self.part}" if self.part else ""
        return f"{part}[{', '.join(map(str, self.element)) or '()'}]"


class Overlap(NamedTuple):
    """Two tensors reach a common byte: `byte` of a storage is in `a.element` and in `b.element`.

    Byte numbers count from the start of the storage, or of the array's buffer.

    Attributes:
        first: where the first tensor lies, in units of `unit` bytes; `a.extent` has it in bytes.
        second: the second one, likewise.
        unit: bytes of a unit.
        storage_nbytes: bytes of the storage that both lie in.
        device: where that is.
        note: what is special about the memory: "meta: no memory behind it", "copy-on-write"; or "".
        parts: which parts of a sparse tensor or a subclass meet; "" for the tensor itself.
        shared: the byte and the elements, once somebody has asked for them.
    """

    first: Extent  # of the first tensor, in units of so many bytes
    second: Extent
    unit: int
    storage_nbytes: int
    device: str
    note: str
    parts: tuple[str, str] = ("", "")
    shared: Shared | None = None  # None until somebody asks: that there is one is certain

    @property
    def byte(self) -> int:
        """A byte of the storage that both reach."""
        return self._found().byte * self.unit

    @property
    def a(self) -> Side:
        """Where the shared byte lies in the first tensor."""
        return Side(self.first.scaled(self.unit), self._found().first, self.parts[0])

    @property
    def b(self) -> Side:
        """Where the shared byte lies in the second tensor."""
        return Side(self.second.scaled(self.unit), self._found().second, self.parts[1])

    def _found(self) -> Shared:
        found = self.shared or meet(self.first, self.second)
        assert isinstance(found, Shared), "decided before it was told"
        return found

    @property
    def relation(self) -> str:
        """How the two lie: "the same bytes", "b inside a", "a inside b" or "a part of each"."""
        a, b = self.a.extent, self.b.extent
        if (a.start, a.stop, a.dimensions) == (b.start, b.stop, b.dimensions):
            return "the same bytes"
        if a.is_dense and a.start <= b.start and b.stop <= a.stop:
            return "b inside a"
        if b.is_dense and b.start <= a.start and a.stop <= b.stop:
            return "a inside b"
        return "a part of each"

    def __str__(self) -> str:
        where = f"a storage of {self.storage_nbytes:,} bytes on {self.device}"
        a, b = (f"bytes {side.extent.start:,} to {side.extent.stop:,}" for side in (self.a, self.b))
        note = f"; {self.note}" if self.note else ""
        shared = f"byte {self.byte:,} of {where} is in a{self.a} and in b{self.b}"
        return f"share memory ({self.relation}): {shared}; a covers {a}, b covers {b}{note}"

    def __repr__(self) -> str:
        return str(self)


_ITSELF: Any = object()
_from_torch: Any = None


def _load_from_torch() -> Any:
    """The one module that touches tensors, once the program has imported torch."""
    global _from_torch
    if sys.modules.get("torch") is not None:
        from tensafe.memory import from_torch

        _from_torch = from_torch
    return _from_torch


def overlap(a: Memory, b: Memory = _ITSELF, *, steps: int = STEPS) -> Overlap | Undecided | None:
    """Whether two tensors or NumPy arrays share a byte; with one argument, whether two of its elements do.

    Exact for any strides, on any device, across dtypes, tensors and arrays; no element is read, and
    copy-on-write tensors stay as they are. Sparse tensors are compared component by component, subclasses by
    the tensors they hold. None is a certain no. `Undecided` (truthy) says why neither can be said: the search
    is bounded by `steps`, and an address may be out of reach. Two lazy clones do not share memory: each takes
    its own copy when it is written.

    Raises `TensafeError` for anything that is neither a tensor nor an array, and for opaque tensors.

    Examples:
        >>> import torch
        >>> x = torch.arange(6)
        >>> overlap(x[0:3], x[1:4]).byte, overlap(x[::2], x[1::2])
        (4, None)
    """
    if b is _ITSELF:
        return _overlap_itself(a, steps)
    tensors = _from_torch or _load_from_torch()
    if tensors is not None:
        pair = tensors.pair_of(a, b)
        if pair is not None:
            first, second, unit = pair
            meets = do_meet(first, second) if first.itemsize == second.itemsize == 1 else None
            found = None if meets is not None else meet(first, second, steps)
            if isinstance(found, Undecided) or not (meets or found):
                return found if isinstance(found, Undecided) else None
            if tensors.same_storage(a, b):
                nbytes, device, note = tensors.described(a)
                return Overlap(first, second, unit, nbytes, device, note, shared=found)
    undecided = None
    for ours in parts_of(a):
        for theirs in parts_of(b):
            answer = _overlap_parts(ours, theirs, steps)
            if isinstance(answer, Overlap):
                return answer
            undecided = undecided or answer
    return undecided


def parts_of(value: object) -> list[Part]:
    """The strided pieces of a tensor or an array; raises `TensafeError` for other things."""
    if from_numpy.is_array(value):
        return from_numpy.parts_of(value)
    if _is_tensor(value):
        from tensafe.memory import from_torch

        try:
            return from_torch.parts_of(value)
        except from_torch.NoStorageError as error:
            raise TensafeError(f"cannot say what shares its memory: {error}") from None
    raise TensafeError(f"a tensor or a NumPy array is needed, not {_article(type(value).__name__)}")


def _is_tensor(value: object) -> TypeGuard[torch.Tensor]:
    """By the type: an object's `__class__` may be code of the program."""
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(type(value), torch.Tensor)


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _overlap_parts(a: Part, b: Part, steps: int) -> Overlap | Undecided | None:
    if a.storage is b.storage:
        return _told(a, b, 0, meet(a.extent, b.extent, steps))
    if a.device != b.device or not a.extent.numel or not b.extent.numel:
        return None
    lazy = [part for part in (a, b) if part.note == "copy-on-write"]
    if len(lazy) == 2:
        return None
    if a.address is None or b.address is None:
        return Undecided("a copy-on-write tensor's address cannot be read by this torch") if lazy else None
    distance = b.address - a.address
    return _told(a, b, distance, meet(a.extent, b.extent.moved(distance), steps))


def _told(a: Part, b: Part, distance: int, found: Shared | Undecided | None) -> Overlap | Undecided | None:
    if not isinstance(found, Shared):
        return found
    names = (a.name, b.name)
    note = a.note or b.note
    return Overlap(a.extent, b.extent.moved(distance), 1, a.storage_nbytes, a.device, note, names, found)


def _overlap_itself(value: Memory, steps: int) -> Overlap | Undecided | None:
    undecided = None
    for part in parts_of(value):
        found = meet_itself(part.extent, steps)
        answer = _told(part, part, 0, found)
        if isinstance(answer, Overlap):
            return answer
        undecided = undecided or answer
    return undecided
