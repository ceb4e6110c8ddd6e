"""What is different between a snapshot and the objects as they are: fields, and a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tensafe.copies.snapshots.looking import Look
from tensafe.copies.snapshots.nodes import Array, Held, Node, Opaque, Plain, Stream, walk
from tensafe.copies.snapshots.randomness import same_state
from tensafe.errors import one_line

_MOST_LINES = 40


@dataclass(frozen=True)
class TensorChange:
    """A tensor or array with other elements."""

    path: str
    changed: int
    """Elements that differ; two NaNs do not."""
    numel: int
    max_abs: float
    """The largest absolute difference; NaN where one side has a NaN and the other not."""

    def __str__(self) -> str:
        where = one_line(self.path)
        return f"{where}: {self.changed:,} of {self.numel:,} elements, by at most {self.max_abs:.3g}"


@dataclass(frozen=True)
class ValueChange:
    """A plain value that is another; or a tensor of another shape or dtype."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{one_line(self.path)}: {short(self.before)} -> {short(self.after)}"


@dataclass(frozen=True, repr=False)
class Diff:
    """What changed since a snapshot; false when nothing did."""

    tensors: tuple[TensorChange, ...]
    values: tuple[ValueChange, ...]
    born: tuple[str, ...]
    gone: tuple[str, ...]
    compared: int
    """How many tensors and values were compared."""

    def __bool__(self) -> bool:
        return bool(self.tensors or self.values or self.born or self.gone)

    def __repr__(self) -> str:
        if not self:
            return f"no difference in {self.compared:,} tensors and values"
        lines = [*map(str, self.tensors), *map(str, self.values)]
        for paths, what in ((self.born, "is new"), (self.gone, "is gone")):
            lines += [f"{one_line(path)}: {what}" for path in paths]
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES:] = [f"… and {len(lines) - _MOST_LINES:,} more"]
        return "\n".join(lines)


def compared(
    before: list[Node],
    copy_of: Callable[[int], torch.Tensor],
    after: list[Node],
    now: Look,
    names: list[str],
) -> Diff:
    """Compare two looks, place by place."""
    old = {path: node for name, root in zip(names, before, strict=True) for path, node in _items(root, name)}
    new = {path: node for name, root in zip(names, after, strict=True) for path, node in _items(root, name)}
    tensors: list[TensorChange] = []
    values: list[ValueChange] = []
    met: set[tuple[int, int]] = set()
    for path in old.keys() & new.keys():
        a, b = old[path], new[path]
        if type(a) is int and type(b) is int:
            if (a, b) not in met:
                met.add((a, b))
                _note(_of_tensors(path, copy_of(a), now.tensors[b]), tensors, values)
        else:
            _note(_of_others(path, a, b), tensors, values)
    order = {path: place for place, path in enumerate(old)}
    return Diff(
        tuple(sorted(tensors, key=lambda change: order[change.path])),
        tuple(sorted(values, key=lambda change: order[change.path])),
        tuple(path for path in new if path not in old),
        tuple(path for path in old if path not in new),
        len(old),
    )


def _items(root: Node, name: str) -> list[tuple[str, Node]]:
    """Everything but containers and what is not looked into; and how long a sequence is, by its items."""
    return [(path, node) for path, node in walk(root, name) if not isinstance(node, (Held, Opaque))]


def _note(
    change: TensorChange | ValueChange | None, tensors: list[TensorChange], values: list[ValueChange]
) -> None:
    if isinstance(change, TensorChange):
        tensors.append(change)
    elif change is not None:
        values.append(change)


def _of_tensors(path: str, a: torch.Tensor, b: torch.Tensor) -> TensorChange | ValueChange | None:
    if a.shape != b.shape or a.dtype != b.dtype:
        return ValueChange(path, _look_of(a), _look_of(b))
    if a.layout is not torch.strided or a.is_quantized or a.is_nested:
        return _of_unusual(path, a, b)
    b = b.detach().to(a.device)
    try:
        if torch.equal(a, b):
            return None
    except NotImplementedError:  # a dtype that has bytes and nothing else
        return None if _same_bytes(a, b) else ValueChange(path, _look_of(a), _Words("other elements"))
    wide = torch.complex128 if a.is_complex() else torch.float64
    unequal = (a != b) & ~((a != a) & (b != b))
    changed = int(unequal.sum())
    if not changed:
        return None
    gap = (a[unequal].to(wide) - b[unequal].to(wide)).abs().max()
    return TensorChange(path, changed, a.numel(), float(gap))


def _same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    rows = [one.contiguous().reshape(-1).view(torch.uint8) for one in (a, b)]
    return torch.equal(rows[0], rows[1])


def _of_unusual(path: str, a: torch.Tensor, b: torch.Tensor) -> TensorChange | ValueChange | None:
    if a.is_nested:
        pairs = zip(a.unbind(), b.unbind(), strict=True)
        same = all(x.shape == y.shape and torch.equal(x, y) for x, y in pairs)
        return None if same else ValueChange(path, _look_of(a), _Words("other elements"))
    dense = [one.dequantize() if one.is_quantized else one.to_dense() for one in (a, b.detach())]
    return _of_tensors(path, dense[0], dense[1])


def _look_of(one: Any) -> _Words:
    return _Words(f"{str(one.dtype).removeprefix('torch.')} {list(one.shape)}")


def _of_others(path: str, a: Node, b: Node) -> TensorChange | ValueChange | None:
    if isinstance(a, Plain) and isinstance(b, Plain):
        same = type(a.value) is type(b.value) and (a.value == b.value or a.value != a.value != b.value)
        return None if same else ValueChange(path, a.value, b.value)
    if isinstance(a, Array) and isinstance(b, Array):
        return _of_arrays(path, a.saved, b.live)
    if isinstance(a, Stream) and isinstance(b, Stream):
        return (
            None
            if same_state(a.state, b.state)
            else ValueChange(path, _Words("state"), _Words("another state"))
        )
    return ValueChange(path, _kind_of(a), _kind_of(b))


def _of_arrays(path: str, a: Any, b: Any) -> TensorChange | ValueChange | None:
    if a.shape != b.shape or a.dtype != b.dtype:
        return ValueChange(path, _look_of(a), _look_of(b))
    if a.dtype.kind not in "biufc":
        return None if _same_elements(a, b) else ValueChange(path, _look_of(a), _Words("other elements"))
    unequal = (a != b) & ~((a != a) & (b != b))
    changed = int(unequal.sum())
    wide = complex if a.dtype.kind == "c" else float
    gap = abs(a[unequal].astype(wide) - b[unequal].astype(wide)).max() if changed else 0.0
    return TensorChange(path, changed, a.size, float(gap)) if changed else None


def _same_elements(a: Any, b: Any) -> bool:
    """Whether arrays of dates, texts, records or objects are equal; the same bytes are, NaT among them."""
    try:
        return a.tobytes() == b.tobytes() or bool((a == b).all())
    except ValueError:  # objects that are arrays, which `==` does not compare as one
        return False


def _kind_of(node: Node) -> Any:
    if isinstance(node, Plain):
        return node.value
    return _Words("a tensor" if type(node) is int else type(node).__name__.lower())


class _Words(str):
    """What we say of a value, not the value."""

    __slots__ = ()


def short(value: Any) -> str:
    """A plain value, as it fits a line."""
    text = str(value) if isinstance(value, _Words) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
