"""Where in an object a copy failed, read from the frames that the error came through."""

from __future__ import annotations

import copyreg
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch

HOLDERS = ("x", "self", "obj")
"""The local names that hold what is being copied: in our frames, in those of `copy`, in `__deepcopy__`."""

TRANSPARENT = ("_parameters", "_buffers", "_modules")
STOCK_REFUSAL = "Only Tensors created explicitly by the user"


def place_of(obj: object, traceback: types.TracebackType | None) -> str:
    """`batch["pred"].logits`: the way from `obj` to what the innermost frame was copying."""
    path, current = name_of(obj), obj
    for value in _chain(traceback):
        step = None if value is current else step_to(current, value)
        if step is not None:
            path, current = path + step, value
    return path


def _chain(traceback: types.TracebackType | None) -> Iterator[Any]:
    """What each frame was copying, outermost first."""
    while traceback is not None:
        names = traceback.tb_frame.f_locals
        yield from (names[name] for name in HOLDERS if name in names)
        traceback = traceback.tb_next


def step_to(holder: Any, value: Any) -> str | None:
    """How one object holds another: `[3]`, `["pred"]`, `.logits`; None where it does not do so directly."""
    if isinstance(holder, Mapping):
        for key, held in dict.items(holder) if isinstance(holder, dict) else holder.items():
            if held is value:
                return f"[{key_name(key)}]"
    elif isinstance(holder, (list, tuple)):
        fields = getattr(type(holder), "_fields", ())
        for index, held in enumerate(holder):
            if held is value:
                return f".{fields[index]}" if index < len(fields) else f"[{index}]"
    return _attribute_to(holder, value)


def key_name(key: object) -> str:
    if isinstance(key, str):
        return '"' + key + '"'
    return repr(key) if isinstance(key, (int, float, bool, bytes, type(None))) else type(key).__name__


def _attribute_to(holder: Any, value: Any) -> str | None:
    is_module = isinstance(holder, torch.nn.Module)
    for name, held in attributes_of(holder):
        if is_module and name in TRANSPARENT and isinstance(held, dict):
            for key, inner in held.items():
                if inner is value:
                    return f"[{key}]" if key.isdigit() else f".{key}"
        elif held is value:
            return f".{name}"
    if isinstance(holder, torch.Tensor) and _gradient_is(holder, value):
        return ".grad"
    return None


def _gradient_is(holder: torch.Tensor, value: object) -> bool:
    return isinstance(value, torch.Tensor) and holder.is_leaf and holder.grad is value


def attributes_of(holder: object) -> Iterator[tuple[str, Any]]:
    """Names and values in an object's `__dict__` and slots."""
    try:
        names = object.__getattribute__(holder, "__dict__")
    except AttributeError:
        names = {}
    if isinstance(names, dict):
        yield from list(names.items())
    for slot in copyreg._slotnames(type(holder)):  # type: ignore[attr-defined]
        try:
            yield slot, object.__getattribute__(holder, slot)
        except AttributeError:
            continue


def name_of(obj: object) -> str:
    """What the caller calls the object: the first frame outside tensafe."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tensafe."):
        frame = frame.f_back
    if frame is not None:
        for names in (frame.f_locals, frame.f_globals):
            for name, value in list(names.items()):
                if value is obj and not name.startswith("_"):
                    return name
    return "obj"
