"""Where a tensor became a view of the kind that PyTorch later refuses: expanded, permuted, one of several.

The calls that make such views leave their line on the storage: the latest of each sort.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from tensafe.facts import Kind, Moment
from tensafe.runtime import modes
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import INTERNAL, Place, site_of


class Sort(str, Enum):
    """What is peculiar to a view."""

    OVERLAPPING = "_tensafe_overlapping"  # several elements in one place
    STRIDED = "_tensafe_strided"  # another order than that of the memory
    TOGETHER = "_tensafe_together"  # one of several that one call returned


MAKERS = {
    Sort.OVERLAPPING: ("expand", "expand_as", "broadcast_to", "unfold", "as_strided"),
    Sort.STRIDED: (
        *("permute", "transpose", "t", "swapaxes", "swapdims", "movedim", "moveaxis", "mT", "T"),
        *("narrow", "diagonal", "adjoint"),
    ),
    Sort.TOGETHER: (
        *("unbind", "split", "chunk", "split_with_sizes", "tensor_split"),
        *("hsplit", "vsplit", "dsplit"),
    ),
}
FUNCTIONS_THAT_EXPAND = ("broadcast_tensors", "broadcast_to", "meshgrid", "expand_copy")

RawView = tuple[str, Any, int]


class Views:
    """Wraps the methods that make such views; `Tensor.view` only so that a traceback shows its tensor."""

    def install(self, patches: Patches) -> None:
        for sort, names in MAKERS.items():
            for name in names:
                if name not in ("T", "mT"):
                    patches.wrap(torch.Tensor, name, functools.partial(_recording, f"Tensor.{name}", sort))
        for name in ("view", "view_as"):
            patches.wrap(torch.Tensor, name, functools.partial(_showing, f"Tensor.{name}"))


def _recording(label: str, sort: Sort, call: Callable[..., Any]) -> Callable[..., Any]:
    getframe, internal, key, plain = sys._getframe, INTERNAL, sort.value, PLAIN
    function_modes = torch._C._len_torch_function_stack
    name = label.rpartition(".")[2]

    def viewing(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_dynamo_compiling():
            return getattr(self, name)(*args, **kwargs)  # which Dynamo takes as the method's own
        result = call(self, *args, **kwargs)
        if type(self) not in plain or (function_modes() and modes.foreign()):
            return result
        try:
            frame: Any = getframe(1)
            while frame is not None and internal[frame.f_code.co_filename]:
                frame = frame.f_back
            if frame is not None:
                self.untyped_storage().__dict__[key] = (label, frame.f_code, frame.f_lasti)
        except (NotImplementedError, RuntimeError):
            pass  # no storage to speak of: a functorch wrapper, a sparse tensor
        return result

    return functools.update_wrapper(viewing, call)


def _showing(label: str, call: Callable[..., Any]) -> Callable[..., Any]:
    name = label.rpartition(".")[2]

    def viewing(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_dynamo_compiling():
            return getattr(self, name)(*args, **kwargs)
        return call(self, *args, **kwargs)

    return functools.update_wrapper(viewing, call)


def made_at(tensor: torch.Tensor | None, sort: Sort) -> Moment | None:
    """The latest call that made a view of this sort over the tensor's memory."""
    if tensor is None or tensor.layout is not torch.strided:
        return None
    try:
        raw: RawView | None = tensor.untyped_storage().__dict__.get(sort.value)
    except (NotImplementedError, RuntimeError):
        return None
    return viewed(raw[0], (raw[1], raw[2])) if raw is not None else None


def viewed(op: str, place: Place | None, note: str = "") -> Moment:
    """The fact that a view was made."""
    return Moment(Kind.VIEWED, op, site_of(place), 0, note=note)
