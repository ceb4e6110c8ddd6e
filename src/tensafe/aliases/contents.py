"""What an object holds: items, attributes, the parts of modules and optimizers; none of its code runs."""

from __future__ import annotations

import collections
import gc
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tensafe.aliases.attributes import (
    attributes_of,
    has_attributes,
    is_kind,
    mro_of,
    namespace_of,
    of_class,
)

Child = tuple[str, Any, Any, str]
"""How it is reached ("attribute", "item", "member"), by which step, the object, its kind or ""."""

ATOMS = frozenset(
    id(kind)
    for kind in (
        *(int, float, complex, bool, str, bytes, bytearray, range, slice, type(None), type(...), type),
        *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType),
        *(types.ModuleType, types.CodeType, types.FrameType, types.GeneratorType, types.CoroutineType),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, torch.Generator),
    )
)
"""The `id`s of types that hold no tensors of their own, or none that belong to them."""

PLAIN = (dict, list, tuple, set, frozenset, collections.deque)
MODULE_PARTS = {"_parameters": "parameter", "_buffers": "buffer", "_modules": ""}
MODULE_BOOKS = frozenset(torch.nn.Module().__dict__) - MODULE_PARTS.keys()
"""Hooks and flags of every module: no tensors in there."""

Contents = Callable[[Any], Iterator[Child]]
_contents: dict[int, tuple[type, Contents | None]] = {}


def contents_of(value: object) -> Iterator[Child]:
    """The children of one object; raises what a container raises that changes meanwhile."""
    reader = reader_of(type(value))
    return iter(()) if reader is None else reader(value)


def reader_of(kind: type) -> Contents | None:
    """How to read objects of this type, None where there is nothing to read."""
    known = _contents.get(id(kind))
    if known is None:
        known = _contents[id(kind)] = (kind, _choose(kind))
    return known[1]


def _choose(kind: type) -> Contents | None:
    if id(kind) in ATOMS or is_kind(kind, type):
        return None
    if is_array_type(kind):
        return _array
    for ancestor, reader in _READERS:
        if is_kind(kind, ancestor):
            return _with_attributes(reader, kind)
    return _attributes if has_attributes(kind) else None


def is_tensor_type(kind: type) -> bool:
    """Whether objects of this type are tensors, whatever its metaclass says."""
    return is_kind(kind, torch.Tensor)


def is_array_type(kind: type) -> bool:
    """Whether objects of this type are NumPy arrays; False where NumPy was never imported."""
    numpy = sys.modules.get("numpy")
    array = None if numpy is None else getattr(numpy, "ndarray", None)
    return array is not None and is_kind(kind, array)


def is_storage_type(kind: type) -> bool:
    return is_kind(kind, torch.UntypedStorage)


def _with_attributes(reader: Contents, kind: type) -> Contents:
    """Subclasses of containers may have attributes, too."""
    if any(kind is plain for plain in PLAIN) or reader in (_module, _optimizer, _tensor, _scripted):
        return reader

    def both(value: Any) -> Iterator[Child]:
        yield from reader(value)
        yield from _attributes(value)

    return both if has_attributes(kind) else reader


def _attributes(value: object) -> Iterator[Child]:
    for name, held in attributes_of(value).items():
        yield "attribute", name, held, ""


def _items(value: dict[Any, Any]) -> Iterator[Child]:
    for key, held in dict.items(value):
        yield "item", key, held, ""


def _entries(value: list[Any]) -> Iterator[Child]:
    for place, held in enumerate(list.__iter__(value)):
        yield "item", place, held, ""


def _fields(value: tuple[Any, ...]) -> Iterator[Child]:
    names = _field_names(type(value))
    for place, held in enumerate(tuple.__iter__(value)):
        if place < len(names):
            yield "attribute", names[place], held, ""
        else:
            yield "item", place, held, ""


def _field_names(kind: type) -> tuple[str, ...]:
    """The fields of a named tuple."""
    if kind is tuple:
        return ()
    for place in mro_of(kind):
        names = namespace_of(place).get("_fields")
        if is_kind(type(names), tuple):
            return tuple(tuple.__iter__(names))
    return ()


def _members(value: Any) -> Iterator[Child]:
    kind = set if is_kind(type(value), set) else frozenset
    for place, held in enumerate(kind.__iter__(value)):
        yield "member", place, held, ""


def _deque(value: collections.deque[Any]) -> Iterator[Child]:
    for place, held in enumerate(collections.deque.__iter__(value)):
        yield "item", place, held, ""


def _module(value: torch.nn.Module) -> Iterator[Child]:
    own = attributes_of(value)
    for part, kind in MODULE_PARTS.items():
        held: Any = own.get(part)
        if is_kind(type(held), dict):
            for name, one in dict.items(held):
                yield "attribute", name, one, kind
    for name, held in own.items():
        if name not in MODULE_PARTS and name not in MODULE_BOOKS:
            yield "attribute", name, held, ""


def _optimizer(value: torch.optim.Optimizer) -> Iterator[Child]:
    own = attributes_of(value)
    state: Any = own.get("state")
    if is_kind(type(state), dict):
        for parameter, entry in dict.items(state):
            yield "state", parameter, entry, "optimizer state"
    for name, held in own.items():
        if name == "param_groups":
            yield "attribute", name, held, "held"
        elif name not in ("state", "defaults") and not name.startswith(("_optimizer_", "_zero_grad")):
            yield "attribute", name, held, ""


def _scripted(value: Any) -> Iterator[Child]:
    """TorchScript modules keep their tensors outside Python."""
    held: torch.Tensor
    for name, held in torch.nn.Module.named_parameters(value, remove_duplicate=False):
        yield "attribute", name, held, "parameter"
    for name, held in torch.nn.Module.named_buffers(value, remove_duplicate=False):
        yield "attribute", name, held, "buffer"


def _proxy(value: Any) -> Iterator[Child]:
    """A read-only mapping over a dictionary."""
    for held in gc.get_referents(value):
        if type(held) is dict:
            yield from _items(held)


def _tensor(value: torch.Tensor) -> Iterator[Child]:
    """The attributes that somebody put on a tensor; its dictionary is not made when there is none."""
    kind = type(value)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter and of_class(kind, "__tensor_flatten__"):
        return  # its tensors are its own parts
    for held in gc.get_referents(value):
        if type(held) is dict:
            for name, one in held.items():
                yield "attribute", name, one, ""


def _array(value: Any) -> Iterator[Child]:
    """The objects in an array of objects."""
    if value.dtype.hasobject and value.dtype.names is None:
        numpy = sys.modules["numpy"]
        plain = value.view(numpy.ndarray)
        for index in numpy.ndindex(plain.shape):
            held = plain[index]
            yield "item", index[0] if len(index) == 1 else index, held, ""


_READERS: list[tuple[type, Contents]] = [
    (torch.Tensor, _tensor),
    (torch.jit.ScriptModule, _scripted),
    (torch.nn.Module, _module),
    (torch.optim.Optimizer, _optimizer),
    (dict, _items),
    (list, _entries),
    (tuple, _fields),
    (set, _members),
    (frozenset, _members),
    (collections.deque, _deque),
    (types.MappingProxyType, _proxy),
]
