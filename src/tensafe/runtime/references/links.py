"""Which tensors of a module share memory, and whether two of them still do after a copy or a conversion."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

import torch

from tensafe.facts import Site
from tensafe.memory import Extent, meet
from tensafe.memory.from_torch import unwatched
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.places.frames import INTERNAL, Place
from tensafe.runtime.places.names import named_tensors
from tensafe.runtime.places.source import site_of_node, syntax_of
from tensafe.runtime.places.variables import attribute, held, shares, stored
from tensafe.runtime.places.writing import assignments

STEPS = 2_000
MOST_TENSORS = 20_000


class Part(NamedTuple):
    """The bytes of a tensor within its storage."""

    extent: Extent

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Part:
        size = tensor.element_size()
        strides = tuple(stride * size for stride in tensor.stride())
        return cls(Extent(int(tensor.storage_offset()) * size, tuple(tensor.shape), strides, size))


class Copied(NamedTuple):
    """A tensor that was copied: within which deep copy, where, what it covered, and its copy."""

    memo: int
    place: Place | None
    order: int
    part: Part
    copy: weakref.ref[Any]


def broken(one: Copied, two: Copied) -> bool:
    """Whether a part and its whole, which shared bytes, are now in two storages."""
    return one.part.extent.numel != two.part.extent.numel and parted(one, two)


def parted(one: Copied, two: Copied) -> bool:
    """Whether two tensors that shared bytes are now in two storages."""
    first, second = one.copy(), two.copy()
    if first is None or second is None or first is second:
        return False
    if first.untyped_storage() is second.untyped_storage():
        return False
    return bool(meet(one.part.extent, two.part.extent, STEPS))


Named = tuple[str, Part]


def links(module: torch.nn.Module) -> list[tuple[Named, Named]]:
    """Pairs of tensors of a module that share bytes and are not one object."""
    by_storage: dict[int, list[tuple[str, torch.Tensor]]] = {}
    for name, tensor in _strided(module):
        by_storage.setdefault(id(tensor.untyped_storage()), []).append((name, tensor))
    pairs = []
    for group in by_storage.values():
        whole = max(group, key=lambda item: item[1].numel())
        for item in group:
            if item[1] is not whole[1]:
                pairs.append(((whole[0], Part.of(whole[1])), (item[0], Part.of(item[1]))))
    return pairs


def tied_names(module: torch.nn.Module) -> list[list[str]]:
    """The names that a module has for one and the same memory, where it has several."""
    groups: dict[tuple[int, int, tuple[int, ...], tuple[int, ...]], list[str]] = {}
    for name, tensor in _strided(module):
        if tensor.numel():
            storage = id(tensor.untyped_storage())
            key = (storage, int(tensor.storage_offset()), tuple(tensor.shape), tuple(tensor.stride()))
            groups.setdefault(key, []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def _strided(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for number, (name, tensor) in enumerate(named_tensors(module)):
        if number >= MOST_TENSORS:
            return
        if type(tensor) in PLAIN and tensor.layout is torch.strided and tensor.device.type != "meta":
            yield name, tensor


def unequal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of a checkpoint hold different values."""
    if one is other or one.shape != other.shape or one.device != other.device or one.device.type == "meta":
        return False
    if one.layout is not torch.strided or other.layout is not torch.strided:
        return False
    with torch.no_grad(), torch._C.DisableTorchFunction(), unwatched():
        if one.dim() and bool((one[:1] != other[:1]).any()):
            return True
        return bool(((one != other) & ((one == one) | (other == other))).any())


def stale_holder(module: torch.nn.Module, storage: Any) -> Site | None:
    """The assignment of the attribute in which a module, or a child, keeps memory that it has left."""
    own_tables = ("_parameters", "_buffers", "_modules")
    for name, value in list(stored(module).items()):
        if name in own_tables:
            continue
        if shares(value, storage) or any(shares(item, storage) for _, item in held(value)):
            return assigned(type(module), name)
    for child in attribute(module, "_modules").values():
        found = stale_holder(child, storage) if child is not None else None
        if found is not None:
            return found
    return None


def assigned(kind: type, name: str) -> Site | None:
    """Where a class assigns an attribute of its objects."""
    for base in kind.__mro__:
        for function in vars(base).values():
            code = getattr(function, "__code__", None)
            if not isinstance(code, CodeType) or INTERNAL[code.co_filename]:
                continue
            syntax = syntax_of(code.co_filename)
            for tree in syntax.parents if syntax is not None else ():
                at = (getattr(tree, "name", ""), getattr(tree, "lineno", 0))
                if at == (code.co_name, code.co_firstlineno):
                    for statement, _ in assignments(tree, f"self.{name}"):
                        return site_of_node((code, 0), statement)
    return None
