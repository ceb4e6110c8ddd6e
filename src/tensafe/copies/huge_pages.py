"""Huge pages under fresh memory, as long as they are cheap."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

_NBYTES = 2 << 20
_MADV_HUGEPAGE, _MADV_NOHUGEPAGE = 14, 15  # include/uapi/asm-generic/mman-common.h of Linux
_DEAR = 0.8e-3
"""Seconds. To touch a huge page is to have 2 MiB zeroed, which takes some 0.2 ms. A virtual machine that gave
its free memory back to its host (free page reporting) has it fetched again first, which takes ten times as
long; its small pages mostly come from memory that it kept.
"""
_PROBES = 3
_CHEAP_FOR, _DEAR_FOR = 0.1, 1.0
"""Seconds for which an answer holds."""

_madvise: Callable[[int, int, int], int] | None = None
_mincore: Callable[[int, int, Any], int] | None = None
if sys.platform == "linux":
    with contextlib.suppress(OSError, AttributeError):
        _libc = ctypes.CDLL(None)
        _libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        _libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
        _madvise, _mincore = _libc.madvise, _libc.mincore


class _Price:
    """What huge pages cost when they were last tried."""

    is_dear = False
    until = 0.0


def ask_for_huge_pages(address: int, nbytes: int) -> None:
    """Let the system back the inside of fresh memory by 2 MiB pages: half the time of a first touch.

    What the memory holds afterwards is zeros where it was, else undefined. Memory that is in use already is
    left alone. A few pages are tried now and then, and while they are dear none is asked for. A refusal costs
    nothing.
    """
    start, stop = -(-address // _NBYTES) * _NBYTES, (address + nbytes) // _NBYTES * _NBYTES
    if _madvise is None or stop <= start or _is_touched(start):
        return
    is_known = perf_counter() < _Price.until
    if (is_known and _Price.is_dear) or _madvise(start, stop - start, _MADV_HUGEPAGE) or is_known:
        return
    count = (stop - start) // _NBYTES
    _Price.is_dear = _are_dear([start + _NBYTES * (count * i // _PROBES) for i in range(min(count, _PROBES))])
    _Price.until = perf_counter() + (_DEAR_FOR if _Price.is_dear else _CHEAP_FOR)
    if _Price.is_dear:
        _madvise(start, stop - start, _MADV_NOHUGEPAGE)


def _is_touched(page: int) -> bool:
    found = ctypes.create_string_buffer(1)
    return _mincore is None or _mincore(page, 1, found) != 0 or bool(found.raw[0] & 1)


def _are_dear(pages: list[int]) -> bool:
    """Whether most of them take long to touch."""
    spent = []
    for page in pages:
        begun = perf_counter()
        ctypes.memset(page, 0, 1)
        spent.append(perf_counter() - begun)
    return sorted(spent)[len(spent) // 2] > _DEAR
