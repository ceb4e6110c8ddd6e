"""The tensors and arrays of a tree of containers and modules, with their paths."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from tensafe.memory.from_numpy import is_array

SEQUENCES = (list, tuple, deque, set, frozenset)


def leaves(tree: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Each tensor and array once, with the first path that leads to it (`batch["pred"].logits`).

    Enters dictionaries, lists, tuples, sets, dataclasses, modules and optimizers; other objects are passed
    over.
    """
    met: dict[int, Any] = {}
    waiting = deque([(name, tree)])
    while waiting:
        path, one = waiting.popleft()
        if id(one) in met:
            continue
        met[id(one)] = one
        if isinstance(one, torch.Tensor) or is_array(one):
            yield path, one
            continue
        waiting.extend((path + step, child) for step, child in children(one))


def children(one: Any) -> Iterator[tuple[str, Any]]:
    """What a container holds, with the step that leads there; nothing for other objects."""
    if isinstance(one, torch.nn.Module):
        yield from ((f".{key}", value) for key, value in held_by(one))
    elif isinstance(one, torch.optim.Optimizer):
        yield ".param_groups", one.param_groups
        yield ".state", one.state
    elif isinstance(one, Mapping):
        yield from ((spelled(key), one[key]) for key in list(one))
    elif isinstance(one, tuple) and hasattr(one, "_fields"):
        yield from ((f".{field}", value) for field, value in zip(one._fields, one, strict=True))
    elif isinstance(one, (set, frozenset)):
        yield from (("{...}", value) for value in one)
    elif isinstance(one, SEQUENCES):
        yield from ((f"[{index}]", value) for index, value in enumerate(one))
    elif dataclasses.is_dataclass(one) and not isinstance(one, type):
        fields = [field.name for field in dataclasses.fields(one)]
        yield from ((f".{field}", getattr(one, field)) for field in fields if hasattr(one, field))


def held_by(module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    """Parameters, buffers and submodules, and plain attributes that are tensors or hold them."""
    for held in (module._parameters, module._buffers, module._modules):
        yield from ((key, value) for key, value in held.items() if value is not None)
    for key, value in vars(module).items():
        if key not in ("_parameters", "_buffers", "_modules") and not key.startswith("_"):
            yield key, value


def attribute_with_tensor(one: Any) -> str | None:
    """The attribute in which an object that nobody knows how to enter holds a tensor or a module."""
    if isinstance(one, type):
        return None
    for name, value in getattr(one, "__dict__", {}).items():
        if isinstance(value, (torch.Tensor, torch.nn.Module)) or is_array(value):
            return str(name)
    return None


def spelled(key: Any) -> str:
    """A key as it is written in an index: `["weight"]`, `[3]`."""
    return f'["{key}"]' if isinstance(key, str) and '"' not in key else f"[{key!r}]"
