"""`to_numpy`: a tensor as an array, with as many copies as it needs and no more."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from tensafe.copies.fresh import clone_of
from tensafe.errors import TensafeError

_STRIDED = torch.strided


class CopyNeededError(TensafeError, ValueError):
    """`copy=False`, and there is no array without a copy; NumPy raises a `ValueError` there."""


def to_numpy(x: Any, copy: bool | None = None) -> Any:
    """A tensor as a NumPy array: detached, on the CPU, lazy conjugation and negation carried out.

    Args:
        x: a tensor, an array, or a dictionary, list or tuple of them, nested; what is none of these stays.
        copy: as in NumPy 2. None copies only where it must (another device, a lazy conjugate, a frozen
            storage); else the array shares the tensor's memory, and a write to one is seen in the other.
            True always copies, False raises where it would have to.

    Raises:
        CopyNeededError: a `ValueError`: `copy=False` and a copy is needed.
        TensafeError: NumPy has no such dtype or layout; the message says what to call instead.
    """
    try:
        import numpy  # noqa: F401
    except ImportError:
        raise TensafeError("to_numpy needs NumPy: pip install numpy") from None
    return _converted(x, copy, "x", {})


def _converted(x: Any, copy: bool | None, name: str, known: dict[int, Any]) -> Any:
    if id(x) in known:
        return known[id(x)]
    if isinstance(x, torch.Tensor):
        found = _array(x, copy, name)
    elif isinstance(x, (dict, list, tuple)):
        return _container(x, copy, name, known)
    elif isinstance(x, torch.nn.Module):
        raise TensafeError(f"{name} is a module, no tree of tensors: to_numpy(module.state_dict())")
    elif copy and _is_array(x):
        found = x.copy()
    else:
        return x
    known[id(x)] = found
    return found


def _container(x: Any, copy: bool | None, name: str, known: dict[int, Any]) -> Any:
    if isinstance(x, dict):
        items: Any = _empty(x)
        known[id(x)] = items
        for key, held in x.items():
            items[key] = _converted(held, copy, f"{name}[{key!r}]", known)
        return items
    values: list[Any] = []
    if isinstance(x, list):
        known[id(x)] = values
    values += (_converted(one, copy, f"{name}[{index}]", known) for index, one in enumerate(x))
    if isinstance(x, list):
        return values
    return type(x)._make(values) if hasattr(type(x), "_make") else tuple(values)


def _empty(x: dict[Any, Any]) -> Any:
    """A dictionary to fill: of the same class where that is one of Python's own."""
    if isinstance(x, defaultdict):
        return type(x)(x.default_factory)
    return type(x)() if type(x) in (dict, OrderedDict) else {}


def _is_array(x: object) -> bool:
    import numpy

    return isinstance(x, numpy.ndarray)


def _array(x: torch.Tensor, copy: bool | None, name: str) -> Any:
    _refuse(x, name)
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        need = _need(x)
        if need:
            return _copy_forbidden(need, name) if copy is False else _as_array(_resolved(x), name)
        if copy:
            return _as_array(clone_of(x.detach()), name)
        try:
            return x.detach().numpy()
        except RuntimeError:  # a storage that refuses writers, as any array may be one
            need = "its storage refuses writers"
            return _copy_forbidden(need, name) if copy is False else _as_array(x.detach().clone(), name)


def _resolved(x: torch.Tensor) -> torch.Tensor:
    return x.detach().cpu().resolve_conj().resolve_neg()


def _copy_forbidden(need: str, name: str) -> NoReturn:
    raise CopyNeededError(f"{name}: {need}, and copy=False forbids the copy that this takes: use copy=None")


def _as_array(x: torch.Tensor, name: str) -> Any:
    try:
        return x.numpy()
    except RuntimeError as error:
        raise TensafeError(f"{name}: a {type(x).__name__} gives NumPy no memory: {error}") from None


def _need(x: torch.Tensor) -> str:
    """Why a copy is needed, "" where it is not."""
    if x.device.type != "cpu":
        return f"it is on {x.device}"
    if x.is_conj():
        return "it is a lazy conjugate"
    return "it is a lazy negative" if x.is_neg() else ""


def _refuse(x: torch.Tensor, name: str) -> None:
    """Raise for what NumPy cannot hold."""
    for is_so, what in _REFUSED:
        if is_so(x):
            raise TensafeError(f"{name}: {what}")
    if x.dtype not in _KNOWN:
        kind = str(x.dtype).removeprefix("torch.")
        instead = "x.float()" if x.dtype.is_floating_point else "x.to(torch.complex64)"
        if not (x.dtype.is_floating_point or x.dtype.is_complex):
            instead = "x.view(torch.uint8)"
        raise TensafeError(f"{name}: NumPy has no {kind}: convert it first, {instead} keeps every value")


_FLOATS = (torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128)
_WHOLE_NUMBERS = (torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
_KNOWN = frozenset([*_FLOATS, *_WHOLE_NUMBERS, torch.uint16, torch.uint32, torch.uint64])
_Question = Callable[[Any], bool]
_is_lazy: _Question = torch.nn.parameter.is_lazy
_REFUSED: list[tuple[_Question, str]] = [
    (_is_lazy, "it is not initialised yet: call the module's forward first"),
    (lambda x: hasattr(x, "full_tensor"), "a DTensor lies on many ranks: x.full_tensor() or x.to_local()"),
    (lambda x: x.is_nested, "a nested tensor is no array: x.unbind(), or x.to_padded_tensor(0.0)"),
    (lambda x: x.layout is not _STRIDED, "NumPy has no sparse or opaque arrays: x.to_dense()"),
    (lambda x: x.is_quantized, "NumPy has no quantised arrays: x.dequantize(), or x.int_repr()"),
    (lambda x: x.is_meta, "a meta tensor has no values"),
]
