"""The record while the program still runs, so that even a killed program leaves one."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from tensafe.findings import NotChecked, Record

AT_ONCE = 100
ALLOWANCE = 1.0  # seconds that writing at once may take in all
PAUSE = 1.0
UNFINISHED = NotChecked(
    "the rest of the program", "it was still running when this was written, or was killed"
)


class Keeping:
    """Writes the record at each of the first new findings, later ones at most once a second; a page, which
    takes longer, in a twentieth of the time.
    """

    def __init__(self, record: Callable[[], Record], keep: Callable[[Record], None]) -> None:
        self._record = record
        self._keep = keep
        self._written = 0
        self._spent = 0.0
        self._next = 0.0
        self._busy = threading.Lock()

    def write(self) -> None:
        """Unless it is too early, or another thread is about it; a full disk costs the program nothing."""
        at_once = self._written < AT_ONCE and self._spent < ALLOWANCE
        if not at_once and time.monotonic() < self._next:
            return
        if self._busy.acquire(blocking=False):
            try:
                with contextlib.suppress(Exception):
                    self._write()
            finally:
                self._busy.release()

    def _write(self) -> None:
        self._written += 1
        begun = time.monotonic()
        record = self._record()
        self._keep(replace(record, not_checked=(*record.not_checked, UNFINISHED)))
        ended = time.monotonic()
        self._spent += ended - begun
        self._next = ended + max(PAUSE, 20 * (ended - begun))
