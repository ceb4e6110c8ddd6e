"""Huge pages under fresh memory, as long as they are cheap."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable
from time import perf_counter

_NBYTES = 2 << 20
_MADV_HUGEPAGE, _MADV_NOHUGEPAGE = 14, 15  # include/uapi/asm-generic/mman-common.h of Linux
_DEAR = 0.8e-3
"""Seconds. To touch a huge page is to have 2 MiB zeroed, which takes some 0.2 ms. A virtual machine that gave
its free memory back to its host (free page reporting) has it fetched again first, which takes ten times as
long; its small pages mostly come from memory that it kept.
"""
_PROBES = 3
_FEWEST = 8
"""Pages; fewer are not worth the question."""

_madvise: Callable[[int, int, int], int] | None = None
if sys.platform == "linux":
    with contextlib.suppress(OSError, AttributeError):
        _function = ctypes.CDLL(None).madvise
        _function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        _madvise = _function


def ask_for_huge_pages(address: int, nbytes: int) -> None:
    """Let the system back the inside of memory by 2 MiB pages: half the time of a first touch.

    Nobody may have touched the memory yet: what it holds afterwards is zeros where it was, else undefined.
    A few pages are tried, and where they are dear the rest stays small. A refusal costs nothing.
    """
    start, stop = -(-address // _NBYTES) * _NBYTES, (address + nbytes) // _NBYTES * _NBYTES
    if _madvise is None or stop <= start or _madvise(start, stop - start, _MADV_HUGEPAGE):
        return
    count = (stop - start) // _NBYTES
    if count >= _FEWEST and _are_dear([start + _NBYTES * (count * i // _PROBES) for i in range(_PROBES)]):
        _madvise(start, stop - start, _MADV_NOHUGEPAGE)


def _are_dear(pages: list[int]) -> bool:
    """Whether most of them take long to touch."""
    spent = []
    for page in pages:
        begun = perf_counter()
        ctypes.memset(page, 0, 1)
        spent.append(perf_counter() - begun)
    return sorted(spent)[len(spent) // 2] > _DEAR
