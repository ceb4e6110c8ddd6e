"""The memory of a finding to and from JSON: storages, and what each tensor reaches in them, in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensafe.facts import Memory, Reached

MOST_DIMENSIONS = 64  # as in PyTorch and NumPy
LARGEST = 2**63


def memory_to_json(memory: Memory) -> dict[str, Any]:
    """`{"nbytes": ..., "device": "cpu", "tensors": [{"role": ..., "offset": ..., "shape": [...], ...}]}`."""
    tensors = [_reached_to_json(tensor) for tensor in memory.tensors]
    return {"nbytes": memory.nbytes, "device": memory.device, "tensors": tensors}


def memory_from_json(data: Mapping[str, Any]) -> Memory:
    """The inverse of `memory_to_json`; raises KeyError, TypeError or ValueError on anything else."""
    tensors = tuple(map(_reached_from_json, data["tensors"]))
    return Memory(_positive(data["nbytes"]), tensors, str(data["device"]))


def _reached_to_json(tensor: Reached) -> dict[str, Any]:
    return {
        "role": tensor.role,
        "label": tensor.label,
        "dtype": tensor.dtype,
        "offset": tensor.offset,
        "shape": list(tensor.shape),
        "strides": list(tensor.strides),
        "itemsize": tensor.itemsize,
    }


def _reached_from_json(data: Mapping[str, Any]) -> Reached:
    shape = tuple(map(_positive, data["shape"]))
    strides = tuple(map(_number, data["strides"]))
    if len(shape) != len(strides) or len(shape) > MOST_DIMENSIONS:
        raise ValueError(f"{len(strides)} strides for {len(shape)} dimensions")
    return Reached(
        role=str(data["role"]),
        offset=_number(data["offset"]),
        shape=shape,
        strides=strides,
        itemsize=max(1, _positive(data["itemsize"])),
        dtype=str(data["dtype"]),
        label=str(data["label"]),
    )


def _positive(value: Any) -> int:
    if _number(value) < 0:
        raise ValueError(f"{value} is negative")
    return int(value)


def _number(value: Any) -> int:
    """Any number that PyTorch can hold."""
    if not -LARGEST <= int(value) < LARGEST:
        raise ValueError(f"{value} is no size of a tensor")
    return int(value)
