"""Copies between addresses: small ones at once, large ones together on several threads."""

from __future__ import annotations

import threading
from collections import deque

import torch

from tensafe.copies.pickling import raw

LARGE = 1 << 20
"""Fewer bytes are copied where they are met."""
_CHUNK = 4 << 20
_LEAST_PER_THREAD = 16 << 20
_MOST_THREADS = 8  # more do not raise the bandwidth of a socket

Job = tuple[int, int, int]
"""To, from, nbytes."""


class Copies:
    """What is still to be copied. The memory on both sides must live until `finish`."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []

    def add(self, to: int, start: int, nbytes: int) -> None:
        """Copy now what is small, and remember what is not."""
        if nbytes < LARGE:
            raw.move(to, start, nbytes)
        else:
            self._jobs.append((to, start, nbytes))

    def finish(self) -> None:
        """Copy the rest. Threads take chunks as they come, so that a busy core delays nobody."""
        total = sum(nbytes for _, _, nbytes in self._jobs)
        threads = min(torch.get_num_threads(), _MOST_THREADS, total // _LEAST_PER_THREAD)
        chunks = deque(_chunk for job in self._jobs for _chunk in _chunks(job))
        self._jobs = []
        helpers = [threading.Thread(target=_work, args=(chunks,), daemon=True) for _ in range(threads - 1)]
        started = [helper for helper in helpers if _start(helper)]
        _work(chunks)
        for helper in started:
            helper.join()


def _work(chunks: deque[Job]) -> None:
    while chunks:
        try:
            to, start, nbytes = chunks.popleft()
        except IndexError:  # another thread took the last
            return
        raw.move(to, start, nbytes)


def _chunks(job: Job) -> list[Job]:
    to, start, nbytes = job
    return [
        (to + offset, start + offset, min(_CHUNK, nbytes - offset)) for offset in range(0, nbytes, _CHUNK)
    ]


def _start(helper: threading.Thread) -> bool:
    """False where no thread can be had, as when the interpreter is ending: the caller then works alone."""
    try:
        helper.start()
    except RuntimeError:
        return False
    return True
