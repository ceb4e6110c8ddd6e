"""While saved tensors are lazy clones: memory with a pointer out is copied when saved, and resized safely.

Copy-on-write sees every writer that asks the storage for a mutable pointer; one that took its pointer before
the save does not ask again.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_compiling

from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import INTERNAL
from tensafe.runtime.values.hooks import make_copied

Wrapped = Callable[..., Any]

GROWING = ("resize_", "resize_as_", "addbmm_")
"""In-place methods that may give their tensor more elements; a test looks for others."""


class Pointers:
    """Wraps what hands out pointers and what resizes."""

    def install(self, patches: Patches) -> None:
        for kind in (torch.Tensor, torch.UntypedStorage):
            patches.wrap(kind, "data_ptr", functools.partial(self._exports, True))
        patches.wrap(torch.Tensor, "__dlpack__", functools.partial(self._exports, False))
        for module in (torch, torch.utils.dlpack):
            patches.wrap(module, "to_dlpack", functools.partial(self._exports, False))
        for name in GROWING:
            patches.wrap(torch.Tensor, name, self._resizes)
        patches.wrap(torch.UntypedStorage, "resize_", self._resizes)

    def _exports(self, torch_only_compares: bool, call: Wrapped) -> Wrapped:
        getframe = sys._getframe

        def exported(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = call(self, *args, **kwargs)
            harmless = torch_only_compares and INTERNAL[getframe(1).f_code.co_filename]
            if not is_compiling() and not harmless:
                with contextlib.suppress(RuntimeError, NotImplementedError):
                    make_copied(_storage_of(self))
            return result

        return functools.update_wrapper(exported, call)

    def _resizes(self, call: Wrapped) -> Wrapped:
        def resized(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_compiling() and (type(self) in PLAIN or isinstance(self, torch.UntypedStorage)):
                with contextlib.suppress(RuntimeError, NotImplementedError):
                    end_lazy_life(_storage_of(self))
            return call(self, *args, **kwargs)

        return functools.update_wrapper(resized, call)


def end_lazy_life(storage: torch.UntypedStorage) -> None:
    """A copy-on-write storage does not survive a resize (c10/core/impl/COW.cpp)."""
    if storage.nbytes():
        base: Any = torch._C.StorageBase  # whose method nobody wraps
        base.data_ptr(storage)


def _storage_of(owner: Any) -> torch.UntypedStorage:
    if isinstance(owner, torch.UntypedStorage):
        return owner
    with torch._C.DisableTorchFunction():
        return owner.untyped_storage()  # type: ignore[no-any-return]
