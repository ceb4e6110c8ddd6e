"""The tensors that are alive at a moment, and when to look: seldom, in a hundredth of the time."""

from __future__ import annotations

import gc
import time

import torch

SHARE = 0.01
ALLOWANCE = 0.2  # seconds of computing that the first looks may take in any program


def live_tensors() -> list[torch.Tensor]:
    """All plain tensors that Python knows of: an instance refers to its class."""
    tensor, parameter = torch.Tensor, torch.nn.Parameter
    referrers = gc.get_referrers(tensor, parameter)
    return [item for item in referrers if (kind := type(item)) is tensor or kind is parameter]


class Looks:
    """Which events are looked at: the 3rd, 6th, 12th and so on, while the time spent stays a small share."""

    def __init__(self) -> None:
        self.count = 0
        self._next = 3
        self._begun = time.perf_counter()
        self._spent = 0.0

    def due(self) -> bool:
        """Whether this event is looked at; tell `spent` of the look."""
        self.count += 1
        if self.count < self._next:
            return False
        if self._spent > ALLOWANCE + SHARE * (time.perf_counter() - self._begun):
            return False
        self._next = 2 * self.count
        return True

    def spent(self, seconds: float) -> None:
        self._spent += seconds
