"""A named piece of shared memory: created, mapped, and removed by its name."""

from __future__ import annotations

import contextlib
import importlib
import mmap
import os
import secrets
import sys
from multiprocessing import resource_tracker
from typing import Any

from tensafe.errors import TensafeError

_KIND = "shared_memory"
"""What Python's own `multiprocessing.shared_memory` calls its entries in the resource tracker."""
_MOST_TRIES = 16


class SharingError(TensafeError):
    """Shared memory that cannot be made, or is there no more."""


def create(nbytes: int) -> tuple[str, mmap.mmap]:
    """New zeroed shared memory of at least `nbytes`, and its name.

    The resource tracker of multiprocessing holds the name until `remove`: should this process be killed, the
    tracker removes it, once the processes that share the tracker have ended.
    """
    posix = _posix()
    for _ in range(_MOST_TRIES):
        name = f"/tensafe-{secrets.token_hex(8)}"
        resource_tracker.register(name, _KIND)  # first, so that no moment is left in which a kill leaks it
        try:
            descriptor = posix.shm_open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode=0o600)
        except FileExistsError:
            resource_tracker.unregister(name, _KIND)
            continue
        except OSError as error:
            resource_tracker.unregister(name, _KIND)
            raise SharingError(f"shared memory cannot be made here: {error}") from None
        try:
            _allocate(descriptor, nbytes)
            return name, _mapped(descriptor, nbytes, False)
        except OSError as error:
            remove(name)
            raise SharingError(
                f"{nbytes} bytes of shared memory cannot be had ({error.strerror}): "
                "share fewer tensors, or enlarge /dev/shm"
            ) from None
        finally:
            os.close(descriptor)
    raise SharingError("no free name for shared memory was found: remove old /dev/shm/tensafe-* files")


def attach(name: str, readonly: bool) -> mmap.mmap:
    """Map the shared memory of this name. Raises `SharingError` when it was removed."""
    try:
        descriptor = _posix().shm_open(name, os.O_RDONLY if readonly else os.O_RDWR, mode=0o600)
    except FileNotFoundError:
        raise SharingError(
            f"the shared memory {name} is there no more: attach before its owner closes it or ends"
        ) from None
    except OSError as error:
        raise SharingError(f"the shared memory {name} cannot be opened: {error.strerror}") from None
    try:
        return _mapped(descriptor, os.fstat(descriptor).st_size, readonly)
    finally:
        os.close(descriptor)


def remove(name: str) -> None:
    """Remove the name; whoever has the memory mapped keeps it. Nothing happens when it is gone already."""
    with contextlib.suppress(FileNotFoundError):
        _posix().shm_unlink(name)
    resource_tracker.unregister(name, _KIND)


def _allocate(descriptor: int, nbytes: int) -> None:
    """Reserve the pages now: a full /dev/shm is an error here, and a bus error at the first write."""
    os.ftruncate(descriptor, nbytes)
    if hasattr(os, "posix_fallocate") and sys.platform == "linux":
        os.posix_fallocate(descriptor, 0, nbytes)


def _mapped(descriptor: int, nbytes: int, readonly: bool) -> mmap.mmap:
    """The memory; from Python 3.13 on, a mapping holds no descriptor."""
    protection = mmap.PROT_READ if readonly else mmap.PROT_READ | mmap.PROT_WRITE
    options: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}
    return mmap.mmap(descriptor, nbytes, flags=mmap.MAP_SHARED, prot=protection, **options)


def _posix() -> Any:
    try:
        return importlib.import_module("_posixshmem")
    except ImportError:
        raise SharingError(
            "this Python has no POSIX shared memory: tensafe.share needs Linux or macOS"
        ) from None
