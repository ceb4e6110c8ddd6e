"""A program that a signal ends is told about first, and then dies by that signal as it would have.

Only where the signal would have its default effect: a handler of the program is the program's own affair, and
`signal.getsignal` shows none of ours. Python runs handlers between two instructions, so a program deep in a
kernel dies when the kernel returns, as with Ctrl-C.
"""

from __future__ import annotations

import functools
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from tensafe.runtime.patches import Patches

ENDING = ("SIGTERM", "SIGHUP")


class Signals:
    """Our handlers in the place of the default action, in one process."""

    def __init__(self, end: Callable[[int], None]) -> None:
        self._end = end
        self._pid = os.getpid()
        self._patches = Patches()
        self._set = signal.signal
        self._taken: set[int] = set()
        self._handler = self._ended  # one object, to be known again

    def take(self) -> None:
        """Where nobody else has taken them; signals can be taken in the main thread only."""
        if os.name != "posix" or threading.current_thread() is not threading.main_thread():
            return
        for number in (getattr(signal, name) for name in ENDING):
            if signal.getsignal(number) is signal.SIG_DFL:
                self._taken.add(number)
                self._set(number, self._handler)
        self._patches.wrap(signal, "signal", self._setting)
        self._patches.wrap(signal, "getsignal", self._getting)

    def give_back(self) -> None:
        self._patches.undo()
        if threading.current_thread() is threading.main_thread():
            for number in self._taken:
                if signal.getsignal(number) is self._handler:
                    self._set(number, signal.SIG_DFL)
        self._taken.clear()

    def _ended(self, number: int, frame: FrameType | None) -> None:
        try:
            if os.getpid() == self._pid:
                self._end(128 + number)
        finally:
            self._set(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _shown(self, handler: Any) -> Any:
        return signal.SIG_DFL if handler is self._handler else handler

    def _setting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def set_handler(signalnum: Any, handler: Any) -> Any:
            is_default = type(handler) in (int, signal.Handlers) and handler == signal.SIG_DFL
            ours = is_default and signalnum in self._taken and os.getpid() == self._pid
            return self._shown(call(signalnum, self._handler if ours else handler))

        return functools.update_wrapper(set_handler, call)

    def _getting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def get_handler(signalnum: Any) -> Any:
            return self._shown(call(signalnum))

        return functools.update_wrapper(get_handler, call)
