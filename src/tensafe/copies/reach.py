"""Every tensor that a deep copy of an object would meet, with its names; no code of the object runs."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

from tensafe.copies.walking.objects import ATOMS
from tensafe.copies.walking.paths import TRANSPARENT, attributes_of, key_name

_LEAVES = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, torch.dtype, torch.device)


class Met:
    """One tensor and its names, in the order they were met."""

    __slots__ = ("names", "tensor")

    def __init__(self, tensor: torch.Tensor, name: str) -> None:
        self.tensor = tensor
        self.names = [name]


def tensors_in(obj: object, name: str, grads: bool = False) -> list[Met]:
    """The tensors in containers, attributes and slots, each once, in the order of the copy."""
    met: dict[int, Met] = {}
    seen: dict[int, object] = {}
    stack: list[tuple[object, str]] = [(obj, name)]
    while stack:
        value, path = stack.pop()
        if type(value) in ATOMS or isinstance(value, _LEAVES):
            continue
        if id(value) in seen:
            if id(value) in met:
                met[id(value)].names.append(path)
            continue
        seen[id(value)] = value
        if isinstance(value, torch.Tensor):
            met[id(value)] = Met(value, path)
            inner = list(_of_tensor(value, grads))
        else:
            inner = list(_of_object(value))
        stack += [(held, path + step) for step, held in reversed(inner)]
    return list(met.values())


def _of_object(value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, held in dict.items(value):
            yield "<key>", key
            yield f"[{key_name(key)}]", held
    elif isinstance(value, (list, tuple, deque)):
        fields = getattr(type(value), "_fields", ())
        for index, held in enumerate(value):
            yield (f".{fields[index]}" if index < len(fields) else f"[{index}]"), held
    elif isinstance(value, (set, frozenset)):
        yield from (("<item>", held) for held in value)
    elif isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
    is_module = isinstance(value, torch.nn.Module)
    for name, held in attributes_of(value):
        if is_module and name in TRANSPARENT and isinstance(held, dict):
            yield from ((f"[{key}]" if key.isdigit() else f".{key}", inner) for key, inner in held.items())
        else:
            yield f".{name}", held


def _of_tensor(value: torch.Tensor, grads: bool) -> Iterator[tuple[str, object]]:
    is_parameter = isinstance(value, torch.nn.Parameter)
    if value.is_leaf and (grads or not is_parameter) and value.grad is not None:
        yield ".grad", value.grad
    if not is_parameter:
        yield from ((f".{name}", held) for name, held in attributes_of(value))
