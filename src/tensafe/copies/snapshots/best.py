"""`tensafe.BestWeights`: keep the best weights while training goes on, and put them back."""

from __future__ import annotations

import math
from typing import Any, Literal, SupportsFloat

from tensafe.copies.snapshots.snapshot import Snapshot, names_of
from tensafe.errors import TensafeError


class BestWeights:
    """The weights of the best score so far.

    ```python
    best = tensafe.BestWeights(model, patience=5)
    for epoch in range(100):
        train(model)
        best.update(validation_loss(model))
        if best.should_stop:
            break
    best.restore()
    ```

    Args:
        objs: what `tensafe.snapshot` takes; usually a module.
        mode: "min" if a lower score is better, "max" if a higher one is.
        patience: how many updates in a row may bring nothing better until `should_stop`; None for any number.
        min_delta: by how much a score must be better to count.

    Attributes:
        score: the best score, None before the first.
        step: at which update it came, counted from 0; None before the first.
        stale: updates since then, those with NaN among them.
        snapshot: what is kept, None before the first score that is a number.

    A score that is NaN is never the best. Gradients are not kept.
    """

    def __init__(
        self,
        *objs: Any,
        mode: Literal["min", "max"] = "min",
        patience: int | None = None,
        min_delta: float = 0.0,
    ) -> None:
        if mode not in ("min", "max"):
            raise TensafeError(f'mode={mode!r}: it is "min" or "max"')
        self._objs = objs
        self._names = names_of(objs)
        self._sign = 1.0 if mode == "min" else -1.0
        self._patience = patience
        self._min_delta = min_delta
        self._updates = 0
        self.score: float | None = None
        self.step: int | None = None
        self.stale = 0
        self.snapshot: Snapshot | None = None

    def update(self, score: SupportsFloat) -> bool:
        """Tell a score; whether it is the best so far, and the weights were kept."""
        value = float(score)
        better = not math.isnan(value) and (
            self.score is None or self._sign * (self.score - value) > self._min_delta
        )
        if better:
            self._keep()
            self.score, self.step, self.stale = value, self._updates, 0
        else:
            self.stale += 1
        self._updates += 1
        return better

    @property
    def should_stop(self) -> bool:
        """Whether `patience` updates in a row brought nothing better."""
        return self._patience is not None and self.stale >= self._patience

    def restore(self) -> None:
        """Put the best weights back, in place; `training`, `requires_grad` and gradients stay as they are.

        Raises:
            TensafeError: there was no score yet that is a number.
        """
        if self.snapshot is None:
            raise TensafeError("no best weights yet: call update(score) with a number first")
        self.snapshot._restore((), weights_only=True)

    def _keep(self) -> None:
        if self.snapshot is None:
            self.snapshot = Snapshot(self._objs, self._names, grads=False)
        else:
            self.snapshot.update()

    def __repr__(self) -> str:
        if self.score is None:
            return "<BestWeights: no score yet>"
        return f"<BestWeights: {self.score:.6g} at update {self.step}, {self.stale} since>"
