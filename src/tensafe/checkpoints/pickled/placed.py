"""Tensors and arrays as a pickle describes them: shape and strides over something stored."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tensafe.checkpoints.pickled.dtypes import ITEMSIZES, pickled_dtype, torch_dtype
from tensafe.checkpoints.pickled.values import Dict, List, Made, Tuple, Value

MOST_DIMENSIONS = 64
LARGEST = 2**63 - 1


class Misfit(Exception):
    """A call whose arguments make no tensor; the text says why."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A strided tensor; `storage` is a `Stored`, the value that holds its bytes, or None (meta device)."""

    storage: Value
    offset: int  # in elements
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    dtype: str | None  # None: the storage's own
    notes: tuple[str, ...] = ()
    call: Made | None = None
    arguments: Tuple | None = None  # of a rebuild function whose numbers can be edited
    is_array: bool = False
    itemsize: int = 0  # 0: by dtype


def dense_strides(shape: tuple[int, ...], is_fortran: bool = False) -> tuple[int, ...]:
    """Elements one after the other, the last index fastest; the first one in Fortran's order."""
    sizes = shape if is_fortran else shape[::-1]
    strides = [1]
    for size in sizes[:-1]:
        strides.append(strides[-1] * max(size, 1))
    strides = strides[: len(shape)]
    return tuple(strides if is_fortran else strides[::-1])


def numbers(value: Value, what: str) -> tuple[int, ...]:
    """A tuple, list or `torch.Size` of non-negative integers."""
    if isinstance(value, Made) and value.name == "torch.Size" and value.positional:
        value = value.positional[0]
    if not isinstance(value, (Tuple, List)):
        raise Misfit(f"its {what} is no tuple")
    items = tuple(number(item, what) for item in value.items)
    if len(items) > MOST_DIMENSIONS:
        raise Misfit(f"its {what} has {len(items)} dimensions")
    return items


def number(value: Value, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Misfit(f"its {what} is no integer")
    if not 0 <= value <= LARGEST:
        raise Misfit(f"its {what} is {value}" if abs(value) < 10**30 else f"its {what} is absurd")
    return value


def _shape(size: Value, stride: Value) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape, strides = numbers(size, "shape"), numbers(stride, "stride")
    if len(shape) != len(strides):
        raise Misfit(f"its shape has {len(shape)} dimensions, its stride {len(strides)}")
    check_count(shape)
    return shape, strides


def check_count(shape: tuple[int, ...]) -> None:
    """Raise `Misfit` when there are more elements than 64 bits count."""
    if 0 not in shape and math.prod(shape) > LARGEST:
        raise Misfit(f"its shape {shape} has more elements than 64 bits can count")


REBUILDS = {
    "torch._utils._rebuild_tensor": 4,
    "torch._utils._rebuild_tensor_v2": 6,
    "torch._utils._rebuild_tensor_v3": 7,
    "torch._utils._rebuild_qtensor": 7,
}
"""With the fewest arguments of each; the first four are storage, offset, size, stride."""
META = "torch._utils._rebuild_meta_tensor_no_storage"


def placed(made: Made) -> Placed | None:
    """The tensor that this very call makes, None when it makes none; raises `Misfit`."""
    arguments = made.arguments
    if made.name in REBUILDS and isinstance(arguments, Tuple):
        return _rebuilt(made, arguments)
    if made.name == META:
        dtype, size, stride, *more = _at_least(made, 3)
        shape, strides = _shape(size, stride)
        return Placed(None, 0, shape, strides, _known(dtype), _grad(more[:1]), made)
    if made.states and isinstance(made.states[-1], Tuple):
        return _built(made, made.states[-1])
    if made.name in ("numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer"):
        return _frombuffer(made)
    return None


def _rebuilt(made: Made, arguments: Tuple) -> Placed:
    storage, offset, size, stride, *more = _at_least(made, REBUILDS[made.name])
    shape, strides = _shape(size, stride)
    quantised = made.name.endswith("qtensor")
    dtype, metadata = None, more[2:3]
    if made.name.endswith("v3"):
        dtype, metadata = _known(more[2]), more[3:4]
    notes = ("quantised",) * quantised + _grad(more[1:2] if quantised else more[:1])
    if not quantised and metadata and isinstance(metadata[0], Dict):
        notes += tuple(f"{bit} bit" for bit in ("conj", "neg") if metadata[0].get(bit) is True)
    return Placed(
        storage, number(offset, "offset"), shape, strides, dtype, notes, call=made, arguments=arguments
    )


def _built(made: Made, state: Tuple) -> Placed | None:
    """By BUILD: `numpy.ndarray`'s state of five, the oldest tensors' state of four."""
    if made.name in ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"):
        if len(state.items) != 5:
            raise Misfit("its state is not that of an array")
        _, size, dtype, is_fortran, data = state.items
        return _array(size, dtype, bool(is_fortran), data)
    if made.name.startswith("torch.") and made.name.endswith("Tensor") and len(state.items) == 4:
        storage, offset, size, stride = state.items
        shape, strides = _shape(size, stride)
        return Placed(storage, number(offset, "offset"), shape, strides, None, call=made)
    return None


def _frombuffer(made: Made) -> Placed:
    data, dtype, size, order = _at_least(made, 4)[:4]
    return _array(size, dtype, order == "F", data)


def _array(size: Value, dtype: Value, is_fortran: bool, data: Value) -> Placed:
    shape = numbers(size, "shape")
    check_count(shape)
    known = pickled_dtype(dtype)
    if known is None:
        raise Misfit("its dtype is not known")
    name, itemsize = known
    strides = dense_strides(shape, is_fortran)
    return Placed(data, 0, shape, strides, name, is_array=True, itemsize=itemsize)


def _at_least(made: Made, count: int) -> tuple[Value, ...]:
    if len(made.positional) < count:
        raise Misfit(f"{made.name} needs {count} arguments, it has {len(made.positional)}")
    return made.positional


def _known(dtype: Value) -> str:
    name = torch_dtype(dtype)
    if name is None or name not in ITEMSIZES:
        raise Misfit("its dtype is not known")
    return name


def _grad(value: tuple[Value, ...] | list[Value]) -> tuple[str, ...]:
    return ("requires grad",) if value and value[0] is True else ()
