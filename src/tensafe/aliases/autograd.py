"""What autograd holds of one tensor, asked for so that nothing changes and no subclass is called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tensafe.aliases.attributes import kind_name
from tensafe.memory import from_torch

_get_creation_meta: Callable[[torch.Tensor], Any] = torch._C._autograd._get_creation_meta


@dataclass(frozen=True, slots=True)
class AutogradState:
    """The answers of one tensor; `refusal` is what autograd says of a view that it no longer accepts."""

    requires_grad: bool = False
    is_leaf: bool = True
    grad_fn: str = ""
    version: int | None = None
    is_inference: bool = False
    created: str = ""  # of a view: "DEFAULT", "MULTI_OUTPUT_NODE", "NO_GRAD_MODE", "IN_CUSTOM_FUNCTION", …
    base: torch.Tensor | None = None
    base_is_leaf: bool = False
    refusal: str = ""


def autograd_state(tensor: torch.Tensor) -> AutogradState:
    """Read it all; a tensor that refuses a question leaves the default."""
    own: Any = torch.Tensor
    with torch._C.DisableTorchFunctionSubclass():
        inference = bool(torch.Tensor.is_inference(tensor))
        base = None if inference else _asked(lambda: own._base.__get__(tensor))
        refusal, grad_fn = "", None
        try:
            grad_fn = own.grad_fn.__get__(tensor)
        except RuntimeError as error:
            refusal = str(error).partition(".")[0]
        return AutogradState(
            requires_grad=bool(own.requires_grad.__get__(tensor)),
            is_leaf=not refusal and grad_fn is None,
            grad_fn="" if grad_fn is None else node_name(grad_fn),
            version=None if inference else own._version.__get__(tensor),
            is_inference=inference,
            created=_created(tensor),
            base=base,
            base_is_leaf=base is not None and bool(_asked(lambda: own.is_leaf.__get__(base))),
            refusal=refusal,
        )


def node_name(node: Any) -> str:
    """`MulBackward0`."""
    return kind_name(type(node))


def _asked(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except RuntimeError:
        return None


def _created(tensor: torch.Tensor) -> str:
    """How autograd says that a view came about, "" for tensors that are none."""
    if not torch.Tensor._is_view(tensor):
        return ""
    created = _asked(lambda: _get_creation_meta(tensor))
    return "" if created is None else str(created).rpartition(".")[2]


def root_of(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor that a view looks into, itself when it is none: views of one root count together."""
    own: Any = torch.Tensor
    with torch._C.DisableTorchFunctionSubclass():
        base = None if torch.Tensor.is_inference(tensor) else _asked(lambda: own._base.__get__(tensor))
    return tensor if base is None else base


def counted_together(written: torch.Tensor, saved: torch.Tensor) -> bool | None:
    """Whether a write to one moves the version of the other; None where PyTorch does not let one see it."""
    own: Any = torch.Tensor
    if torch.Tensor.is_inference(written) or torch.Tensor.is_inference(saved):
        return None
    if own._version.__get__(written) != own._version.__get__(saved):
        return False
    if root_of(written) is root_of(saved):
        return True
    with torch._C.DisableTorchFunctionSubclass():
        in_graph = own.requires_grad.__get__(written) and not _asked(lambda: own.is_leaf.__get__(written))
    return True if in_graph else None


def making_of(tensor: torch.Tensor) -> str:
    """How a view came about that autograd gives up after a write elsewhere; "" for all other tensors."""
    created = _created(tensor)
    if created in ("", "DEFAULT"):
        return ""
    own: Any = torch.Tensor
    with torch._C.DisableTorchFunctionSubclass():
        return created if own.requires_grad.__get__(tensor) else ""


def references(tensor: torch.Tensor) -> int:
    """References to a tensor, to be compared with another count that is made in the same way."""
    return sys.getrefcount(tensor)


def unheld_view() -> torch.Tensor:
    """A view whose base nobody else holds; made past what was put over `torch.empty` and `Tensor.view`."""
    own: Any = torch._C
    made: torch.Tensor = own.TensorBase.view(own._VariableFunctions.empty(1), 1)
    return made


def is_refused(tensor: torch.Tensor) -> bool:
    """Whether autograd already refuses this view."""
    own: Any = torch.Tensor
    with torch._C.DisableTorchFunctionSubclass():
        try:
            own.grad_fn.__get__(tensor)
        except RuntimeError:
            return True
    return False


def is_frozen(tensor: torch.Tensor) -> bool:
    """Whether the storage refuses every write (`tensafe.freeze`); asked only where asking changes nothing."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
        return False
    if tensor.device.type == "meta" or torch._is_functional_tensor(tensor):
        return False
    try:
        storage = tensor.untyped_storage()
        if from_torch.is_copy_on_write(tensor):
            return False
    except (RuntimeError, NotImplementedError):  # no storage of its own
        return False
    try:
        storage.data_ptr()
    except RuntimeError:
        return True
    return False
