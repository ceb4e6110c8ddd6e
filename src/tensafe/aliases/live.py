"""Tensors that are alive, whether or not anything has a name for them."""

from __future__ import annotations

import gc

import torch

from tensafe.aliases.contents import is_tensor_type

MOST_TENSORS = 200_000


def live_tensors(not_seen: list[str]) -> list[torch.Tensor]:
    """Every tensor with a Python object, from one look at all that the garbage collector tracks."""
    tracked = gc.get_objects()
    kinds = {id(kind): kind for kind in map(type, tracked)}  # by `id`: hashing runs metaclasses
    wanted = {number for number, kind in kinds.items() if is_tensor_type(kind)}
    found = [value for value in tracked if id(type(value)) in wanted]
    if len(found) > MOST_TENSORS:
        not_seen.append(f"{len(found):,} tensors are alive: {MOST_TENSORS:,} of them were looked at")
    return found[:MOST_TENSORS]
