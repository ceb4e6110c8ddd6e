"""Where the tensors of a moment lie: a storage, and the elements that each tensor reaches in it."""

from __future__ import annotations

from dataclasses import dataclass

from tensafe.memory import Extent


@dataclass(frozen=True, slots=True)
class Reached:
    """One tensor on its storage, in bytes as an `Extent` has them, with its part in what happened."""

    role: str  # a few words: "saved for SigmoidBackward0", "written by `Tensor.add_`"
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    dtype: str = ""  # "float32", without "torch."
    label: str = ""  # as the source spells the tensor

    @property
    def extent(self) -> Extent:
        """The bytes of its elements."""
        return Extent(self.offset, self.shape, self.strides, self.itemsize)


@dataclass(frozen=True, slots=True)
class Memory:
    """One storage of so many bytes, and the tensors on it that take part."""

    nbytes: int
    tensors: tuple[Reached, ...]
    device: str = "cpu"
