"""`tensafe.readonly`: a view that refuses writes, while its original may be written."""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from tensafe.copies.leaves import attribute_with_tensor, children, spelled
from tensafe.copies.readonly_tensor import ReadOnlyError, ReadOnlyTensor, wrapped
from tensafe.memory.from_numpy import is_array

T = TypeVar("T")
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def readonly(x: T) -> T:
    """The same memory as `x`, without a copy, through which nothing can be written.

    A tensor gives a view of it that refuses writes at the writing line, with `ReadOnlyError`: in-place
    methods, `out=`, `x[...] =`, foreach, fused, `.data`, and the same through every view taken of it, in
    Python, in TorchScript or inside an operation. Reads give ordinary tensors (`readonly(x) + 1` may be
    written), and gradients reach `x`. `.numpy()` gives a non-writeable array. What the owner of `x` writes
    is seen.

    An array gives a non-writeable view. A tree (dictionaries, lists, tuples, dataclasses) gives a tree of
    the same kinds; a tensor that stands in two places is one view in both. Anything else in it is kept as
    it is.

    Each operation that reads a read-only tensor costs about 5 us more, as it passes through Python; what
    it gives costs nothing more. To forbid writes to everybody, and at no cost, use `tensafe.freeze`. Not
    seen: writes through a raw pointer (`data_ptr()`, `untyped_storage()`), and those of a tensor that
    `torch.from_numpy` makes of the non-writeable array, against NumPy's flag and with torch's warning.

    Raises `ReadOnlyError` for a module or an optimizer (freeze it, or give its `state_dict()`), for tensor
    subclasses with memory of their own kind, and for objects that hold tensors but are no containers.
    """
    made: T = _mapped(x, "x", {})
    return made


def _mapped(one: Any, path: str, made: dict[int, tuple[Any, Any]]) -> Any:
    """The read-only form of one object; `made` holds those already there, with their originals."""
    if id(one) in made:
        return made[id(one)][1]
    if isinstance(one, torch.Tensor):
        result = _read_only_tensor(one, path)
    elif is_array(one):
        result = one.view()
        result.setflags(write=False)
    else:
        return _container(one, path, made)
    made[id(one)] = (one, result)
    return result


def _read_only_tensor(tensor: torch.Tensor, path: str) -> torch.Tensor:
    if isinstance(tensor, ReadOnlyTensor):
        return tensor
    if type(tensor) not in _PLAIN and type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        raise ReadOnlyError(
            f"{path} is a {type(tensor).__name__}, which handles its own memory: "
            "use tensafe.freeze, or make the tensors inside it read-only"
        )
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        kind = "nested" if tensor.is_nested else "quantised" if tensor.is_quantized else "sparse"
        raise ReadOnlyError(f"{path} is a {kind} tensor: use tensafe.freeze, or make its parts read-only")
    return wrapped(tensor)


def _container(one: Any, path: str, made: dict[int, tuple[Any, Any]]) -> Any:
    if isinstance(one, (torch.nn.Module, torch.optim.Optimizer)):
        raise ReadOnlyError(
            f"{path} is a {type(one).__name__}: use tensafe.freeze, or make its state_dict() read-only"
        )
    for kinds, rebuild in _REBUILT:
        if isinstance(one, kinds):
            return rebuild(one, path, made)
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        return _dataclass(one, path, made)
    _refuse_holders(one, path)
    return one


def _dictionary(one: Any, path: str, made: dict[int, tuple[Any, Any]]) -> Any:
    result = copy.copy(one)
    made[id(one)] = (one, result)
    for key in list(one):
        result[key] = _mapped(one[key], path + spelled(key), made)
    return result


def _sequence(one: Any, path: str, made: dict[int, tuple[Any, Any]]) -> Any:
    result = copy.copy(one)
    made[id(one)] = (one, result)
    for index, value in enumerate(one):
        result[index] = _mapped(value, f"{path}[{index}]", made)
    return result


def _tuple(one: Any, path: str, made: dict[int, tuple[Any, Any]]) -> Any:
    values = [_mapped(value, path + step, made) for step, value in children(one)]
    if all(new is old for new, old in zip(values, one, strict=True)):
        return one
    result = type(one)._make(values) if hasattr(one, "_make") else type(one)(values)
    made[id(one)] = (one, result)
    return result


def _set(one: Any, path: str, made: dict[int, tuple[Any, Any]]) -> Any:
    return type(one)(_mapped(value, path + "{...}", made) for value in one)


def _dataclass(one: Any, path: str, made: dict[int, tuple[Any, Any]]) -> Any:
    result = copy.copy(one)
    made[id(one)] = (one, result)
    for step, value in children(one):
        object.__setattr__(result, step[1:], _mapped(value, path + step, made))
    return result


_Rebuild = Callable[[Any, str, dict[int, tuple[Any, Any]]], Any]
_REBUILT: list[tuple[tuple[type, ...], _Rebuild]] = [
    ((dict,), _dictionary),
    ((list, deque), _sequence),
    ((tuple,), _tuple),
    ((set, frozenset), _set),
]


def _refuse_holders(one: Any, path: str) -> None:
    """An object that we do not know how to rebuild must not smuggle a writable tensor through."""
    name = attribute_with_tensor(one)
    if name is not None:
        raise ReadOnlyError(
            f"{path} is a {type(one).__name__} that holds a tensor in `{name}`: "
            f"make {path}.{name} read-only instead"
        )
