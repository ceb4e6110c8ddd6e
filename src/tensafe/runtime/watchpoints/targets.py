"""What there is to watch in an object of the program, and how a dotted name leads to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from tensafe.errors import TensafeError
from tensafe.memory import from_numpy, from_torch
from tensafe.memory.part import Part

Target = tuple[str, Any, Part]
"""A name, the tensor or array, and one piece of its memory."""


def targets_of(x: object, name: str) -> list[Target]:
    """The memory of a tensor, array, module, optimizer, or of a list or dictionary of them."""
    targets = list(_parts(x, name))
    if not targets:
        raise TensafeError(f"nothing to watch in a {type(x).__name__}: give a tensor, array or module")
    return targets


def _parts(x: object, name: str) -> Iterator[Target]:
    if isinstance(x, torch.Tensor):
        try:
            parts = from_torch.parts_of(x)
        except from_torch.NoStorageError as error:
            raise TensafeError(f"cannot watch {name}: {error}") from None
        yield from ((f"{name}.{part.name}" if part.name else name, x, part) for part in parts)
    elif from_numpy.is_array(x):
        yield from ((name, x, part) for part in from_numpy.parts_of(x))
    elif isinstance(x, torch.nn.Module):
        tensors = [*x.named_parameters(), *x.named_buffers()]
        for own, tensor in tensors:
            yield from _parts(tensor, f"{name}.{own}")
    elif isinstance(x, torch.optim.Optimizer):
        yield from _optimizer_parts(x, name)
    elif isinstance(x, Mapping):
        for key, value in x.items():
            yield from _parts(value, f"{name}[{key!r}]")
    elif isinstance(x, list | tuple):
        for place, value in enumerate(x):
            yield from _parts(value, f"{name}[{place}]")


def _optimizer_parts(optimizer: torch.optim.Optimizer, name: str) -> Iterator[Target]:
    place = 0
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            yield from _parts(parameter, f"{name}'s parameter {place}")
            for key, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, torch.Tensor):
                    yield from _parts(value, f"{name}'s {key} {place}")
            place += 1


def step_into(value: object, name: str) -> object:
    """The attribute, item or member of this name, None where there is none; no property is run."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, list | tuple) and name.isdigit():
        return value[int(name)] if int(name) < len(value) else None
    own = getattr(value, "__dict__", {})
    for table in (own, *(own.get(key, {}) for key in ("_parameters", "_buffers", "_modules"))):
        if isinstance(table, dict) and name in table:
            return table[name]
    return _grad(value) if name == "grad" else None


def _grad(value: object) -> object:
    return value.grad if isinstance(value, torch.Tensor) and value.is_leaf else None
