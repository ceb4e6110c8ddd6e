"""Fresh memory for copies: whole storages, on huge pages where they are large."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from tensafe.copies.huge_pages import ask_for_huge_pages

LARGE_NBYTES = 32 << 20
"""From here on malloc gives memory that nobody touched yet (glibc: the largest `M_MMAP_THRESHOLD`): it costs
more to touch than to copy into, and huge pages pay. Smaller blocks may be warm, and advice then does harm.
"""


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Autograd records nothing; cheaper than `torch.no_grad()` where it is entered per tensor."""
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    try:
        yield
    finally:
        torch._C._set_grad_enabled(before)


below_autograd: Any = getattr(torch._C, "_AutoDispatchBelowAutograd", torch.no_grad)
"""As a context, nothing is recorded, and each call of an operator is cheaper than under `no_grad`."""

_foreach_clone: Any = getattr(torch, "_foreach_clone", None)  # not in every PyTorch


def clone_all(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Clones without history of small tensors, in few calls; as plain tensors, whatever their class."""
    with below_autograd():
        if _foreach_clone is not None:
            return list(_foreach_clone(tensors)) if tensors else []
        clones = list(map(torch.empty_like, tensors))
        if clones:
            torch._foreach_copy_(clones, tensors)
        return clones


def clone_of(x: torch.Tensor) -> torch.Tensor:
    """`x.clone()` under `no_grad`, on huge pages when it is large; of x's own elements alone."""
    if x.nbytes < LARGE_NBYTES or not x.is_cpu:
        return torch.clone(x)
    y = torch.empty_like(x)
    on_huge_pages(y)
    y.copy_(x)
    return y


def storage_of(nbytes: int, device: torch.device) -> torch.UntypedStorage:
    """A fresh storage; its bytes are not set."""
    flat = torch.empty(nbytes, dtype=torch.uint8, device=device)
    if nbytes >= LARGE_NBYTES and flat.is_cpu:
        on_huge_pages(flat)
    return flat.untyped_storage()


def bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    """The bytes of a storage as a tensor that shares them."""
    flat = torch.empty(0, dtype=torch.uint8, device=storage.device)
    flat.set_(storage, 0, (storage.nbytes(),), (1,))
    return flat


def storage_copy(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """A storage of the same bytes; neither pinned nor shared, as `UntypedStorage.clone()` gives it."""
    new = storage_of(storage.nbytes(), storage.device)
    if new.nbytes():
        bytes_of(new).copy_(bytes_of(storage))
    return new


def seat(y: torch.Tensor, storage: torch.UntypedStorage, x: torch.Tensor) -> None:
    """Put a tensor at x's place in another storage, lazily conjugated or negated as x is."""
    y.set_(storage, x.storage_offset(), x.size(), x.stride())
    if x.is_conj() != y.is_conj():
        torch._C._set_conj(y, x.is_conj())
    if x.is_neg() != y.is_neg():
        torch._C._set_neg(y, x.is_neg())


def on_huge_pages(fresh: torch.Tensor) -> None:
    """Ask for huge pages inside memory that nobody has touched yet."""
    ask_for_huge_pages(fresh.data_ptr(), fresh.nbytes)
