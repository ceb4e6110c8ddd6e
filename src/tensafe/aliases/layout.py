"""Whether a strided tensor can be viewed in another shape, and why not: integers only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ViewAnswer:
    """What `x.view(shape)` and `x.reshape(shape)` do, with the reason; truthy where both give a view.

    `strides` are in elements; None where there is no such view. `copied_nbytes` is what `reshape` copies.
    """

    shape: tuple[int, ...] | None  # None where the number of elements does not fit
    strides: tuple[int, ...] | None
    copied_nbytes: int
    reason: str

    def __bool__(self) -> bool:
        return self.strides is not None

    def __str__(self) -> str:
        return self.reason


def view_as(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    itemsize: int,
    target: Iterable[int],
    is_array: bool = False,
) -> ViewAnswer:
    """The answer for a tensor of this shape and these strides (in elements), by PyTorch's own rule.

    An array has no such `view`, and its `reshape` follows the same rule.
    """
    wanted = tuple(target)
    full = _completed(math.prod(shape), wanted)
    if full is None:
        return ViewAnswer(None, None, 0, f"{math.prod(shape)} elements do not fill the shape {list(wanted)}")
    if not math.prod(shape):
        return ViewAnswer(full, _empty_strides(shape, strides, full), 0, "it is empty: any shape is a view")
    found = _strides(shape, strides, full)
    if found is not None:
        both = f"view({_said(wanted)}) and reshape({_said(wanted)}) give a view"
        return ViewAnswer(full, found, 0, f"reshape({_said(wanted)}) gives a view" if is_array else both)
    raises = "" if is_array else f"view({_said(wanted)}) raises and "
    why = f"{raises}reshape({_said(wanted)}) copies: {_break(shape, strides, full)}"
    return ViewAnswer(full, None, math.prod(shape) * itemsize, why)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a contiguous tensor of this shape."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return tuple(strides)


def memory_format(shape: tuple[int, ...], strides: tuple[int, ...]) -> str:
    """`contiguous`, `channels last`, `channels last 3d`, `permuted` (dense in another order), `strided`."""
    if _follows(shape, strides, range(len(shape))):
        return "contiguous"
    if len(shape) == 4 and _follows(shape, strides, (0, 2, 3, 1)):
        return "channels last"
    if len(shape) == 5 and _follows(shape, strides, (0, 2, 3, 4, 1)):
        return "channels last 3d"
    order = sorted(range(len(shape)), key=lambda axis: -strides[axis])
    return "permuted" if _follows(shape, strides, order) else "strided"


def _follows(shape: tuple[int, ...], strides: tuple[int, ...], order: Iterable[int]) -> bool:
    """Whether the elements lie one after the other when the axes are taken in this order."""
    if not math.prod(shape):
        return True
    expected = 1
    for axis in reversed(tuple(order)):
        if shape[axis] != 1:
            if strides[axis] != expected:
                return False
            expected *= shape[axis]
    return True


def _said(target: tuple[int, ...]) -> str:
    return ", ".join(map(str, target))


def _completed(numel: int, target: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape with its -1 worked out, None where it does not fit."""
    unknown = target.count(-1)
    known = math.prod(size for size in target if size != -1)
    if unknown > 1 or any(size < -1 for size in target):
        return None
    if not unknown:
        return target if known == numel else None
    if not known or numel % known:
        return None
    return tuple(numel // known if size == -1 else size for size in target)


def _empty_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]
) -> tuple[int, ...]:
    return strides if shape == target else contiguous_strides(target)


def _runs(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """Axes that can be joined, from the last: (elements, innermost stride, first axis, last axis)."""
    runs: list[tuple[int, int, int, int]] = []
    for axis in range(len(shape) - 1, -1, -1):
        size, stride = shape[axis], strides[axis]
        if size == 1 and runs:
            continue
        if runs and stride == runs[-1][0] * runs[-1][1]:
            numel, inner, _, last = runs[-1]
            runs[-1] = (numel * size, inner, axis, last)
        elif runs and runs[-1][0] == 1:
            runs[-1] = (size, stride, axis, axis)
        else:
            runs.append((size, stride, axis, axis))
    return runs


def _strides(
    shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The strides of the view: each run of joinable axes must be filled by whole axes of the target."""
    if not shape:
        return (1,) * len(target)
    found = [0] * len(target)
    axis = len(target) - 1
    for numel, inner, _, _ in _runs(shape, strides):
        filled = 1
        while axis >= 0 and (filled < numel or target[axis] == 1):
            found[axis] = filled * inner
            filled *= target[axis]
            axis -= 1
        if filled != numel:
            return None
    return tuple(found) if axis == -1 else None


def _break(shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]) -> str:
    """Which two neighbouring dimensions the target joins though they do not lie one after the other."""
    for (numel, inner, first, _), following in zip(
        _runs(shape, strides), _runs(shape, strides)[1:], strict=False
    ):
        last = following[3]
        if _splits(shape, target, first):
            continue
        return (
            f"dimension {last} has stride {strides[last]}, where joining it to dimension {first} "
            f"needs {numel * inner}"
        )
    return f"no strides of the shape {list(target)} reach its elements in this order"


def _splits(shape: tuple[int, ...], target: tuple[int, ...], axis: int) -> bool:
    """Whether the target has a boundary between `axis` and the one before it."""
    inside = math.prod(shape[axis:])
    tail = 1
    for size in reversed(target):
        if tail == inside:
            return True
        tail *= size
    return tail == inside and math.prod(shape) == inside
