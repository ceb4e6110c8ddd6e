"""How much memory the process has in use: a glance that tells whether a look at all tensors can find more.

A look goes through every object of the interpreter, which a short stretch of a large program (one test of
many) cannot afford; this costs some microseconds.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import NamedTuple

import torch


class InUse(NamedTuple):
    """Two views of it, in bytes: neither sees everything."""

    heap: int  # handed out by malloc: sees what lies where something was freed
    mapped: int  # of the address space: sees files and shared memory

    def exceeds(self, before: InUse, nbytes: int) -> bool:
        """Whether so much more may be in use than before."""
        return self.heap - before.heap >= nbytes or self.mapped - before.mapped >= nbytes


def in_use() -> InUse | None:
    """None where it cannot be told: not on glibc, under another allocator, with tensors on other devices."""
    heap = _heap()
    if heap is None or torch.cuda.is_initialized():
        return None
    try:
        with open("/proc/self/statm", "rb") as statm:
            pages = int(statm.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return InUse(heap(), pages * os.sysconf("SC_PAGE_SIZE"))


class _Mallinfo2(ctypes.Structure):
    _names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks")
    _fields_ = [(name, ctypes.c_size_t) for name in (*_names, "keepcost")]


@functools.cache
def _heap() -> Callable[[], int] | None:
    """Bytes that malloc has handed out; None where tensors do not come from it."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2  # glibc 2.33 and newer
    except (OSError, AttributeError, TypeError):
        return None
    mallinfo2.restype = _Mallinfo2

    def handed_out() -> int:
        info = mallinfo2()
        return int(info.uordblks + info.hblkhd)

    before = handed_out()
    probe = torch.empty(_PROBE_NBYTES, dtype=torch.uint8)
    return handed_out if handed_out() - before >= probe.nbytes else None


_PROBE_NBYTES = 256 << 10
