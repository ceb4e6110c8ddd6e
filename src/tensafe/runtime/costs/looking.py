"""A look at all live tensors after some backwards and at the end: for kept graphs and pinned storages."""

from __future__ import annotations

import time

import torch

from tensafe.runtime import modes
from tensafe.runtime.costs.pinned import LARGE, WORTH_A_NOTICE, Pinned
from tensafe.runtime.graphs.retained import Retained
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import Place
from tensafe.runtime.places.holders import user_frames
from tensafe.runtime.storages.in_use import InUse, in_use
from tensafe.runtime.storages.live import Looks, live_tensors
from tensafe.runtime.watcher import Context, Watcher

FEWEST_BACKWARDS = 3


_after_last: list[InUse | None] = [None]
"""What was in use when the last stretch of this process had been looked at."""


class Looking(Watcher):
    """One sweep over Python's objects serves both questions; none where no large storage can have come."""

    def __init__(self, context: Context) -> None:
        self._looks = Looks()
        self._retained = Retained(context)
        self._pinned = Pinned(context)
        self._before: InUse | None = None

    def install(self, patches: Patches) -> None:
        self._before = in_use()
        if _can_have_come(LARGE, _after_last[0], self._before):
            self._pinned.begin(live_tensors())

    def backward(self, roots: list[torch.Tensor], retained: bool, place: Place | None) -> None:
        if not retained and not modes.asked():
            self._retained.backward()
            if self._looks.due():
                self._look(over=False)

    def finish(self) -> None:
        asked = self._looks.count >= FEWEST_BACKWARDS
        if asked or _can_have_come(WORTH_A_NOTICE, self._before, in_use()):
            self._look(over=True)
        _after_last[0] = in_use()
        self._retained.finish()
        self._pinned.finish()

    def _look(self, over: bool) -> None:
        begun = time.thread_time()
        tensors = live_tensors()
        old = self._retained.old(tensors) if self._looks.count >= FEWEST_BACKWARDS else []
        storages = self._pinned.storages(tensors)
        if over:
            self._pinned.begin(tensors)  # for the next stretch
        del tensors  # the references to each tensor are counted now
        pins = self._pinned.pins(storages)
        del storages
        self._looks.spent(time.thread_time() - begun)  # lines take longer, but only for what is wrong
        frames = [] if over else user_frames()
        self._retained.look(old, frames)
        self._pinned.look(pins, frames, over)


def _can_have_come(nbytes: int, before: InUse | None, now: InUse | None) -> bool:
    """Whether a storage so large can have come; not seen where as much older memory went."""
    return before is None or now is None or now.exceeds(before, nbytes)
