"""What an index does: a slice gives a view, a mask or a list of places gives a copy."""

from __future__ import annotations

from tensafe.ops import Dtype
from tensafe.static.values import (
    ARRAY,
    TENSOR,
    Constant,
    Memory,
    Opaque,
    Scalar,
    Sequence,
    Value,
)

BASIC, ADVANCED, UNSURE = "basic", "advanced", "unsure"


def kind_of_index(index: Value) -> str:
    """Whether `x[index]` is a view, a copy, or cannot be told."""
    if type(index) is Sequence and index.kind == "tuple":
        kinds = {kind_of_index(item) for item in index.items}
        return ADVANCED if ADVANCED in kinds else UNSURE if UNSURE in kinds else BASIC
    if type(index) is Sequence:
        return ADVANCED if _holds_numbers(index) else UNSURE
    if type(index) is Memory:
        return _of_memory(index)
    if type(index) is Constant:
        return UNSURE if isinstance(index.value, str) else BASIC
    return BASIC if type(index) is Scalar or type(index) is Slice else UNSURE


def _of_memory(index: Memory) -> str:
    if index.kind not in (TENSOR, ARRAY):
        return UNSURE
    if index.dtype is Dtype.BOOL:
        return ADVANCED
    return ADVANCED if index.spread and index.dtype is Dtype.INTEGER else UNSURE


def _holds_numbers(index: Sequence) -> bool:
    return bool(index.items) and all(
        type(item) is Constant and isinstance(item.value, int) for item in index.items
    )


class Slice(Opaque):
    """`a:b:c` in a subscript."""

    __slots__ = ("bounds",)

    def __init__(self, *bounds: Value | None) -> None:
        self.bounds = bounds

    def of(self, items: list[Value]) -> list[Value] | None:
        """The items that it selects, None when a bound is not known."""
        places: list[int | None] = []
        for bound in self.bounds:
            place = bound.value if type(bound) is Constant else None
            if bound is not None and place is not None and not isinstance(place, int):
                return None
            if bound is not None and type(bound) is not Constant:
                return None
            places.append(place if isinstance(place, int) else None)
        return items[slice(*places)] if places[2] != 0 else None


def is_advanced(index: Value) -> bool:
    return kind_of_index(index) == ADVANCED


def key_of_index(index: Value) -> object:
    """A hashable key: equal for equal constants, one for everything else."""
    if type(index) is Constant:
        return repr(index.value)
    return "any"
