"""A look at all live tensors after some backwards and at the end: for kept graphs and pinned storages."""

from __future__ import annotations

import time

import torch

from tensafe.runtime import modes
from tensafe.runtime.costs.pinned import Pinned
from tensafe.runtime.graphs.retained import Retained
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import Place
from tensafe.runtime.places.holders import user_frames
from tensafe.runtime.storages.live import Looks, live_tensors
from tensafe.runtime.watcher import Context, Watcher

FEWEST_BACKWARDS = 3


class Looking(Watcher):
    """One sweep over Python's objects serves both questions."""

    def __init__(self, context: Context) -> None:
        self._looks = Looks()
        self._retained = Retained(context)
        self._pinned = Pinned(context)

    def install(self, patches: Patches) -> None:
        self._pinned.begin(live_tensors())

    def backward(self, roots: list[torch.Tensor], retained: bool, place: Place | None) -> None:
        if not retained and not modes.asked():
            self._retained.backward()
            if self._looks.due():
                self._look(over=False)

    def finish(self) -> None:
        self._look(over=True)
        self._retained.finish()
        self._pinned.finish()

    def _look(self, over: bool) -> None:
        begun = time.thread_time()
        tensors = live_tensors()
        old = self._retained.old(tensors) if self._looks.count >= FEWEST_BACKWARDS else []
        storages = self._pinned.storages(tensors)
        del tensors  # the references to each tensor are counted now
        pins = self._pinned.pins(storages)
        del storages
        self._looks.spent(time.thread_time() - begun)  # lines take longer, but only for what is wrong
        frames = [] if over else user_frames()
        self._retained.look(old, frames)
        self._pinned.look(pins, frames, over)
