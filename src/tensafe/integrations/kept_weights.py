"""The best weights of a trainer's training: parameters and persistent buffers, kept in memory."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import torch

from tensafe.copies.snapshots.best import BestWeights
from tensafe.errors import TensafeError

Mode = Literal["min", "max"]


class KeptWeights:
    """The weights of a module at its best score.

    The module's other attributes are the trainer's business and are left alone. It can be copied and pickled;
    the copy has kept nothing yet.
    """

    def __init__(self, mode: Mode, min_delta: float) -> None:
        BestWeights({}, mode=mode)  # refuses a wrong mode now
        self._mode, self._min_delta = mode, min_delta
        self._module: torch.nn.Module | None = None
        self._weights: dict[str, torch.Tensor] = {}
        self.best: BestWeights | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_module": None, "_weights": {}, "best": None}

    def begin(self, module: torch.nn.Module, mode: Mode | None = None) -> None:
        self._module, self._weights = module, {}
        weights = self._weights  # names the tensors in what is raised
        self.best = BestWeights(weights, mode=mode or self._mode, min_delta=self._min_delta)

    def update(self, score: float) -> bool:
        """Keep the weights if the score is the best so far; whether it is."""
        assert self.best is not None, "begin() was not called"
        self._look()
        return self.best.update(score)

    def restore(self) -> None:
        """Put the best weights back, in place."""
        if self.best is None:
            raise TensafeError("no best weights: there was no training with this callback")
        self._look()
        self.best.restore()

    def finish(self, restore: bool, monitor: str) -> None:
        """The training ended well."""
        if self.best is None or not restore:
            return
        if self.best.snapshot is None:
            warnings.warn(
                f"tensafe: {monitor} gave no number in this training: the weights stay the last ones",
                stacklevel=2,
            )
            return
        self.restore()

    def _look(self) -> None:
        """The tensors that the module holds now: one that was exchanged since takes its place."""
        assert self._module is not None
        self._weights.clear()
        self._weights.update(weights_of(self._module))


class KeepsBest:
    """What the callbacks of all trainers that keep the best weights have in common."""

    _kept: KeptWeights

    @property
    def best(self) -> BestWeights | None:
        """`.score`, `.step` and `.snapshot` of the last training; None before it."""
        return self._kept.best

    def restore(self) -> None:
        """Put the best weights back, in place."""
        self._kept.restore()


def weights_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """What `state_dict()` names, as the live tensors: no buffer that is rebuilt at will, no hook asked."""
    found: dict[str, torch.Tensor] = dict(module.named_parameters())
    for place, part in module.named_modules():
        for name, buffer in part._buffers.items():
            if buffer is not None and name not in part._non_persistent_buffers_set:
                found[f"{place}.{name}" if place else name] = buffer
    return found


def missing(callback: str, monitor: str, names: list[str]) -> TensafeError:
    """For a metric that nobody logged."""
    there = ", ".join(sorted(names)) or "none"
    return TensafeError(f"{callback}(monitor={monitor!r}): no such metric was logged; there are: {there}")
