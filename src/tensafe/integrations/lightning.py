"""Callbacks for `lightning` and `pytorch_lightning`, whichever is there."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tensafe.integrations.kept_weights import KeepsBest, KeptWeights, Mode, missing
from tensafe.integrations.watched_training import WatchesTraining

PACKAGES = {"lightning": "lightning.pytorch", "pytorch_lightning": "pytorch_lightning"}


def _bases() -> tuple[type, ...]:
    """The `Callback` of every package that is imported; of those that are installed, where none is yet.

    Each trainer takes its own package's callbacks only, and the two can be there side by side.
    """
    found = [module for module in PACKAGES.values() if sys.modules.get(module) is not None]
    found = found or [module for package, module in PACKAGES.items() if find_spec(package) is not None]
    if not found:
        raise ModuleNotFoundError("tensafe.integrations.lightning needs lightning: pip install lightning")
    return tuple(import_module(module).Callback for module in found)


if TYPE_CHECKING:

    class Callback:
        """The base, for type checkers: the packages need not be installed."""

else:
    Callback = type("Callback", _bases(), {"__module__": __name__})


class _Copied(Callback):
    """A trainer hands its module's `log` to its callbacks; a copy of one is not to take the module along."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("log", "log_dict")}


class WatchingCallback(WatchesTraining, _Copied):
    """tensafe's running engine around `trainer.fit`; what it finds is told when the fit ends.

    ```python
    trainer = L.Trainer(callbacks=[WatchingCallback()])
    ```

    It changes no result. The report goes to standard error, of rank 0 and for all ranks; a rank that stops by
    an error tells its own. `callback.findings` and `callback.record` hold it afterwards, in the process that
    trained: not in one that spawned the ranks.

    Args:
        steps: watch so many batches only; None for the whole fit.
        select: names, codes or code prefixes of rules, as in `tensafe.watching`.
        ignore: rules to leave out.
        strict: raise `TensafeError` at the end of the fit when there are errors or warnings.
        tell: is called with the report instead, such as `logging.getLogger("train").warning`.
        output: a file for the record, for `tensafe report`; written by rank 0.
    """

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == "fit":
            self._training.begin()

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        self._training.stepped()

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._training.finish()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._training.fail(exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._training.leave()  # a tuner ends its trial fits without a word


class BestWeightsCallback(KeepsBest, _Copied):
    """Keeps the weights of the best `monitor` in memory, and puts them back at the end of `trainer.fit`.

    ```python
    trainer = L.Trainer(callbacks=[BestWeightsCallback("val_loss")])
    ```

    Parameters and persistent buffers, in place; each rank keeps its own part. A fit that an error ends keeps
    its last weights: `callback.restore()` gives the best.

    Args:
        monitor: a metric that the module logs.
        mode: "min" if lower is better, "max" if higher is.
        min_delta: by how much it must be better to count.
        restore: False leaves the last weights; `callback.restore()` puts the best back later.
    """

    def __init__(
        self, monitor: str, mode: Mode = "min", *, min_delta: float = 0.0, restore: bool = True
    ) -> None:
        self.monitor = monitor
        self._restore = restore
        self._kept = KeptWeights(mode, min_delta)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._kept.begin(pl_module)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if _judged_at_epoch_end(trainer):
            self._look(trainer)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        fitting = trainer.state.fn == "fit" and not trainer.sanity_checking
        if fitting and not _judged_at_epoch_end(trainer):
            self._look(trainer)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._kept.finish(self._restore, self.monitor)

    def _look(self, trainer: Any) -> None:
        metrics = trainer.callback_metrics
        if self.monitor not in metrics:
            raise missing("BestWeightsCallback", self.monitor, list(metrics))
        # one judgement for all ranks, or they would go on with different weights
        self._kept.update(trainer.strategy.broadcast(float(metrics[self.monitor])))


def _judged_at_epoch_end(trainer: Any) -> bool:
    """As `ModelCheckpoint` does it: after a validation, or where that ends the epoch, with the epoch."""
    if trainer.check_val_every_n_epoch != 1:
        return False
    return not trainer.enable_validation or bool(trainer.val_check_interval == 1.0)
