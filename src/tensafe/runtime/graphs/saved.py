"""Saved-tensor hooks: the truth about every tensor that backward needs, from a copy-on-write clone and the
version counter.

The program always gets the very tensor that plain PyTorch would give it; the clone is only compared. Source
of the mechanism: `torch.autograd.graph.saved_tensors_hooks`, `torch._lazy_clone` (copy-on-write storages).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

import torch

from tensafe.runtime import modes
from tensafe.runtime.places.frames import INTERNAL
from tensafe.runtime.refusals.trail import next_number, trail
from tensafe.runtime.storages import ledger as ledgers
from tensafe.runtime.storages.ledger import Ledger

COPY_LIMIT_NBYTES = 16 << 20  # a storage that cannot be cloned lazily is copied up to this size
RATIO_LIMIT = 64  # a saved view this much smaller than its storage is checked by version alone
RATIO_FROM_NBYTES = 1 << 20
WRITES_THROUGH_SAVED = frozenset({"CtcLossBackward0"})
"""Backward kernels that take a mutable pointer to a saved tensor inside a parallel loop, where a
copy-on-write storage may not become an ordinary one (c10/core/impl/COW.cpp asserts): theirs becomes one
before, contents unchanged."""


class Saved(NamedTuple):
    """What a pack hook keeps of one saved tensor."""

    tensor: torch.Tensor
    version: int
    order: int
    ledger: Ledger | None
    clone: torch.Tensor | None
    generation: int
    code: CodeType | None
    offset: int


OnChanged = Callable[[Saved, bool], None]
"""Called with the saved tensor and whether the version counter moved; may raise what PyTorch would raise."""


def make_pack(on_failure: Callable[[str, Exception], None]) -> Callable[[torch.Tensor], Any]:
    """The pack hook; all names of this hot path are locals of this function."""
    detach = torch._C.TensorBase.detach
    lazy_clone = torch._lazy_clone
    is_cow: Callable[[torch.Tensor], bool] = torch._C._is_cow_tensor  # type: ignore[attr-defined]
    dispatch_modes = torch._C._len_torch_dispatch_stack
    function_modes = torch._C._len_torch_function_stack
    tracing: Callable[[], Any] = torch._C._get_tracing_state
    getframe = sys._getframe
    clock = ledgers.clock
    key = ledgers._KEY
    plain = modes.PLAIN
    new = tuple.__new__

    def pack(tensor: torch.Tensor) -> Any:
        try:
            if (
                type(tensor) not in plain
                or dispatch_modes()
                or (function_modes() and modes.foreign())
                or tracing()
            ):
                return _pack_plainly(tensor)
            frame: Any = getframe(1)
            while frame is not None and INTERNAL[frame.f_code.co_filename]:
                frame = frame.f_back
            code, offset = (None, 0) if frame is None else (frame.f_code, frame.f_lasti)
            number = next_number() - 1  # of the node that saves
            if code is not trail.code or offset != trail.offset:
                trail.move(code, offset, number)
            trail.last = number
            kept = tensor if tensor.is_leaf else detach(tensor)
            if kept.layout is not torch.strided:
                return new(Saved, (kept, kept._version, next(clock), None, None, 0, code, offset))
            storage = kept.untyped_storage()
            ledger = storage.__dict__.get(key)
            if ledger is None:
                ledger = storage.__dict__[key] = Ledger()
            ledger.first = clone = None
            large = storage.nbytes() > RATIO_FROM_NBYTES
            if ledger.benign or (large and kept is tensor and kept.requires_grad and _is_huge(storage)):
                pass
            elif ledger.lazy and ledger.exported is None and not (large and _tiny_view(kept, storage)):
                if not is_cow(kept):
                    ledger.generation += 1
                try:
                    clone = lazy_clone(detach(kept) if kept.requires_grad else kept)
                except RuntimeError:
                    ledger.lazy = False
            if clone is None:
                clone = _full_clone(kept, ledger)
            return new(
                Saved, (kept, kept._version, next(clock), ledger, clone, ledger.generation, code, offset)
            )
        except Exception as error:
            on_failure("a saved tensor", error)
            return _pack_plainly(tensor)

    return pack


def make_unpack(on_changed: OnChanged) -> Callable[[Any], torch.Tensor]:
    """The unpack hook: compares, tells of a change, and returns the very tensor that was saved."""
    is_cow: Callable[[torch.Tensor], bool] = torch._C._is_cow_tensor  # type: ignore[attr-defined]
    current_node: Callable[[], Any] = torch._C._current_autograd_node

    def unpack(saved: Any) -> torch.Tensor:
        if type(saved) is not Saved:
            return _unpack_plainly(saved, on_changed)
        tensor, version, _, ledger, clone, generation, _, _ = saved
        if tensor._version != version:
            on_changed(saved, True)
        elif clone is not None and ledger is not None:
            untouched = ledger.lazy and ledger.generation == generation and is_cow(tensor)
            if not untouched and not _same_bytes(clone, tensor):
                on_changed(saved, False)
            node = current_node()
            if node is not None and node.name() in WRITES_THROUGH_SAVED:
                tensor.data_ptr()
        return tensor

    return unpack


class Plain(NamedTuple):
    """A tensor that is kept under PyTorch's own check alone."""

    tensor: torch.Tensor
    version: int


def _pack_plainly(tensor: torch.Tensor) -> Plain:
    """Keep the tensor and compare nothing: a subclass, or a mode or tracer of the program is active.

    Only an output of the node that saves must be detached, as the node would keep itself alive.
    """
    with torch._C.DisableTorchFunction():
        node = tensor.grad_fn
        own = node is not None and node._sequence_nr() >= next_number() - 1
        return Plain(tensor.detach() if own else tensor, tensor._version)


def _unpack_plainly(kept: Plain, on_changed: OnChanged) -> torch.Tensor:
    with torch._C.DisableTorchFunction():
        if kept.tensor._version != kept.version:
            on_changed(Saved(*kept, 0, None, None, 0, None, 0), True)
    return kept.tensor


def _is_huge(storage: torch.UntypedStorage) -> bool:
    """A parameter of this size is checked by version alone: a copy at the next step would be felt."""
    return storage.nbytes() > COPY_LIMIT_NBYTES


def _tiny_view(tensor: torch.Tensor, storage: torch.UntypedStorage) -> bool:
    """A small view of a large storage, which its next write would copy as a whole."""
    return storage.nbytes() > RATIO_LIMIT * tensor.numel() * tensor.element_size()


def _full_clone(tensor: torch.Tensor, ledger: Ledger) -> torch.Tensor | None:
    """A plain copy where others hold a pointer into the memory (copy-on-write would not see their writes)."""
    if ledger.benign or ledger.exported is None or (tensor.is_leaf and tensor.requires_grad):
        return None
    if tensor.numel() * tensor.element_size() > COPY_LIMIT_NBYTES:
        return None
    with torch.no_grad():
        return torch._C.TensorBase.clone(torch._C.TensorBase.detach(tensor))


def _same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bitwise equality: a NaN equals itself."""
    if one.shape != other.shape:
        return False
    with torch.no_grad():
        one, other = one.detach(), other.detach()
        if torch._C._VariableFunctions.equal(one, other):
            return True
        if not (one.is_floating_point() or one.is_complex()):
            return False
        if one.is_complex():
            one, other = torch.view_as_real(one.resolve_conj()), torch.view_as_real(other.resolve_conj())
        nan = one.isnan()
        return bool(torch._C._VariableFunctions.equal(nan, other.isnan())) and bool(
            ((one == other) | nan).all()
        )
