"""What `explain` says of one tensor or array, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tensafe.aliases.layout import ViewAnswer, memory_format, view_as
from tensafe.memory import Extent

Relation = Literal[
    "the same tensor",
    "the same bytes",
    "contains it",
    "inside it",
    "overlaps it",
    "no common byte",
    "cannot tell",
]
"""How the bytes of another tensor over the same storage lie to those of the explained one."""

Effect = Literal["raises", "silently wrong", "raises in backward", "raises later", "note"]
"""What a write in place leads to; later: when another tensor is used again."""


@dataclass(frozen=True, slots=True)
class Region:
    """One strided piece of memory: a strided tensor has one, a sparse one `indices` and `values`.

    Attributes:
        name: "values" of a sparse tensor, "" of a strided one.
        extent: where it lies, in bytes from the start of its storage.
        viewed_nbytes: bytes that it reaches, each counted once; at most so many where not `is_exact`.
        storage: what to call the storage: "the storage of `table`".
        storage_nbytes: bytes of the whole storage.
        device: "cpu", "cuda:0", "meta".
        notes: "copy-on-write", "pinned", "shared memory", "memory-mapped: …", "frozen".
        is_exact: whether its bytes could be counted.
    """

    name: str  # "" for a strided tensor
    extent: Extent  # in bytes, from the start of the storage
    viewed_nbytes: int  # bytes that it reaches, each counted once; at most these where not `is_exact`
    storage: str  # what to call the storage: "the storage of `table`"
    storage_nbytes: int
    device: str
    notes: tuple[str, ...] = ()  # "copy-on-write", "pinned", "shared memory", "memory-mapped: …", "frozen"
    is_exact: bool = True  # whether its bytes could be counted

    @property
    def fraction(self) -> float:
        """The part of the storage that it reaches, 0 to 1."""
        return min(1.0, self.viewed_nbytes / self.storage_nbytes) if self.storage_nbytes else 1.0

    @property
    def unviewed_nbytes(self) -> int:
        """Bytes of the storage that it does not reach, and keeps alive all the same."""
        return max(0, self.storage_nbytes - self.viewed_nbytes)


@dataclass(frozen=True, slots=True)
class Alias:
    """Another live tensor or array over the same storage, with every name under which it was found.

    Attributes:
        names: empty where it is alive without a name that was looked at.
        kind: "parameter", "buffer", "gradient", "optimizer state", "array" or "tensor".
        relation: how its bytes lie to those of the explained tensor, in words.
        shape: in elements.
        dtype: "float32", without "torch.".
        extent: where it lies, in bytes from the start of the storage.
        region: which piece of the explained tensor it meets; "" of a strided one.
        is_base: whether the explained tensor is a view of it.
    """

    names: tuple[str, ...]  # empty: alive, but without a name that was looked at
    kind: str  # "parameter", "buffer", "gradient", "optimizer state", "array", "tensor"
    relation: Relation
    shape: tuple[int, ...]
    dtype: str
    extent: Extent
    region: str = ""  # which piece of the explained tensor it meets
    is_base: bool = False

    @property
    def name(self) -> str:
        """The shortest name, or ""."""
        return self.names[0] if self.names else ""


@dataclass(frozen=True, slots=True)
class SavedBy:
    """A node of a live graph that keeps bytes of this storage for its backward.

    Attributes:
        node: "MulBackward0".
        argument: the name of the saved tensor in the node: "self".
        path: from a tensor that is alive to the node: ("loss", "MeanBackward0", "MulBackward0").
        relation: how the saved bytes lie to those of the explained tensor.
        counted: whether autograd would count a write through the explained tensor; None where nobody can say.
    """

    node: str  # "MulBackward0"
    argument: str  # "self": the name of the saved tensor in the node
    path: tuple[str, ...]  # from a tensor that is alive: ("loss", "MeanBackward0", "MulBackward0")
    relation: Relation
    counted: bool | None  # whether a write through the explained tensor is counted where autograd looks


@dataclass(frozen=True, slots=True)
class Reason:
    """Why not to write in place, or what to know when doing it; as text, both sentences.

    Attributes:
        code: a stable word for programs: "leaf", "saved for backward".
        effect: what the write leads to: "raises", "silently wrong", "raises in backward", "raises later", or
            "note" where it is allowed.
        says: the reason.
        instead: what to do; may be "".
    """

    code: str  # "leaf", "view of leaf", "saved for backward", …: stable, for programs
    effect: Effect
    says: str
    instead: str = ""

    def __str__(self) -> str:
        return f"{self.says} {self.instead}".strip()


@dataclass(frozen=True, slots=True)
class LinePlace:
    """A line of the program and the operation that ran there.

    Attributes:
        op: "Tensor.add_".
        path: of the file.
        line: counted from 1.
    """

    op: str
    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.op} at {self.path}:{self.line}"


@dataclass(frozen=True)
class Explanation:
    """Everything about one tensor's memory; `may_write` is False exactly where `reasons` says why."""

    names: tuple[str, ...]  # under which it was found, the shortest first
    kind: str  # "tensor", "parameter", "array", …
    type_name: str  # "torch.Tensor", "torch.nn.Parameter", "numpy.ndarray", a subclass' own name
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements; None where it is not strided
    dtype: str
    itemsize: int
    device: str
    layout: str  # "strided", "sparse_coo", …
    source: Literal["torch", "numpy"]
    regions: tuple[Region, ...]
    aliases: tuple[Alias, ...] = ()  # with names, the nearest first
    unnamed_aliases: tuple[Alias, ...] = ()
    base: str = ""  # what it is a view of: a name, "a tensor without a name", "a bytearray"
    requires_grad: bool = False
    is_leaf: bool = True
    grad_fn: str = ""
    version: int | None = None  # None: an inference tensor or an array, which count no writes
    is_inference: bool = False
    saved_by: tuple[SavedBy, ...] = ()
    reasons: tuple[Reason, ...] = ()  # against writing in place
    cautions: tuple[Reason, ...] = ()  # what a write in place does besides, though it is allowed
    made: LinePlace | None = None  # where a runtime record exists
    written: LinePlace | None = None
    notes: tuple[str, ...] = ()  # conjugated, quantised, …
    not_seen: tuple[str, ...] = ()  # where the search stopped

    @property
    def name(self) -> str:
        """The shortest name, or ""."""
        return self.names[0] if self.names else ""

    @property
    def is_array(self) -> bool:
        """Whether it is a NumPy array."""
        return self.source == "numpy"

    @property
    def may_write(self) -> bool:
        """Whether an in-place write, now, neither raises nor makes a gradient wrong."""
        return not self.reasons

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, as if each had its own."""
        return sum(region.extent.nbytes for region in self.regions)

    @property
    def storage_nbytes(self) -> int:
        """Bytes that stay allocated as long as it lives, and that `torch.save` and pickle write."""
        return sum({region.storage: region.storage_nbytes for region in self.regions}.values())

    @property
    def viewed_nbytes(self) -> int:
        """Bytes of its storages that it reaches, each counted once."""
        return sum(region.viewed_nbytes for region in self.regions)

    @property
    def unviewed_nbytes(self) -> int:
        """Bytes that it keeps alive without reaching them."""
        return max(0, self.storage_nbytes - self.viewed_nbytes)

    @property
    def is_contiguous(self) -> bool:
        """Whether it is contiguous in torch's usual order of dimensions."""
        return self.strides is not None and self.memory_format == "contiguous"

    @property
    def memory_format(self) -> str:
        """`contiguous`, `channels last`, `permuted`, `strided`; the layout's name where it is not strided."""
        return self.layout if self.strides is None else memory_format(self.shape, self.strides)

    def view_as(self, *shape: int) -> ViewAnswer:
        """What `view(*shape)` and `reshape(*shape)` do, and why: truthy where both give a view."""
        if self.strides is None:
            return ViewAnswer(None, None, 0, f"a {self.layout} tensor has no strides to view by")
        return view_as(self.shape, self.strides, self.itemsize, shape, self.is_array)
