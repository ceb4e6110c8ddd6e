"""Callbacks for `transformers.Trainer`."""

from __future__ import annotations

import functools
import weakref
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tensafe.integrations.kept_weights import KeepsBest, KeptWeights, Mode, missing
from tensafe.integrations.watched_training import WatchesTraining

if TYPE_CHECKING:

    class TrainerCallback:
        """The base, for type checkers: the package need not be installed."""

else:
    if find_spec("transformers") is None:
        raise ModuleNotFoundError(
            "tensafe.integrations.transformers needs transformers: pip install 'transformers[torch]'"
        )
    from transformers import TrainerCallback


class WatchingCallback(WatchesTraining, TrainerCallback):
    """tensafe's running engine around `trainer.train()`; what it finds is told when the training ends.

    ```python
    trainer = Trainer(model, args, callbacks=[WatchingCallback()], train_dataset=data)
    ```

    It changes no result. The report goes to standard error, of rank 0 and for all ranks; a rank that stops by
    an error tells its own. `callback.findings` and `callback.record` hold it afterwards. While a callback of
    this class lives, `Trainer.train` is wrapped, as transformers tells a callback nothing of an error.

    Args:
        steps: watch so many optimizer steps only; None for the whole training.
        select: names, codes or code prefixes of rules, as in `tensafe.watching`.
        ignore: rules to leave out.
        strict: raise `TensafeError` at the end of the training when there are errors or warnings.
        tell: is called with the report instead, such as `logging.getLogger("train").warning`.
        output: a file for the record, for `tensafe report`; written by rank 0.
    """

    def _is_made(self) -> None:
        _errors.hear(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        _errors.hear(self)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._training.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._training.stepped()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._training.finish()

    def _ended_by(self, error: BaseException) -> None:
        """The training ends by an error."""
        self._training.fail(error)


class BestWeightsCallback(KeepsBest, TrainerCallback):
    """Keeps the weights of the best evaluation in memory, and puts them back at the end of `trainer.train()`.

    ```python
    args = TrainingArguments(eval_strategy="epoch")
    trainer = Trainer(model, args, callbacks=[BestWeightsCallback("eval_loss")], ...)
    ```

    What `load_best_model_at_end` does, without a checkpoint for each evaluation. Parameters and persistent
    buffers, in place; each rank keeps its own part. A training that an error ends keeps its last weights:
    `callback.restore()` gives the best.

    Args:
        monitor: a metric of the evaluation, with or without "eval_"; None for the arguments'
            `metric_for_best_model`, or the loss.
        mode: "min" or "max"; None for the arguments' `greater_is_better`, or "min" for a loss.
        min_delta: by how much it must be better to count.
        restore: False leaves the last weights; `callback.restore()` puts the best back later.
    """

    def __init__(
        self,
        monitor: str | None = None,
        mode: Mode | None = None,
        *,
        min_delta: float = 0.0,
        restore: bool = True,
    ) -> None:
        self.monitor = monitor
        self._mode = mode
        self._restore = restore
        self._kept = KeptWeights(mode or "min", min_delta)
        self._unmet: list[str] = []  # metrics of evaluations, none of which was the one
        self._training = False

    def on_train_begin(self, args: Any, state: Any, control: Any, *, model: Any, **_: Any) -> None:
        self._name = _name(self.monitor or args.metric_for_best_model or "loss")
        self._kept.begin(model, self._mode or _mode(self._name, args.greater_is_better))
        self._unmet, self._training = [], True

    def on_evaluate(self, args: Any, state: Any, control: Any, *, metrics: dict[str, Any], **_: Any) -> None:
        if not self._training:  # somebody's own evaluation, before or after
            return
        if self._name in metrics:
            self._kept.update(float(metrics[self._name]))
            self._unmet = []
        elif self._kept.best is not None and self._kept.best.score is None:
            self._unmet += metrics

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._refuse_unmet()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._refuse_unmet()
        self._training = False
        self._kept.finish(self._restore, self._name)

    def _refuse_unmet(self) -> None:
        """Once every data set of an evaluation had its turn: a name that none of them has is a mistake."""
        if self._unmet:
            raise missing("BestWeightsCallback", self._name, self._unmet)


def _name(monitor: str) -> str:
    return monitor if monitor.startswith("eval_") else f"eval_{monitor}"


def _mode(name: str, greater_is_better: bool | None) -> Mode:
    if greater_is_better is None:
        return "min" if name.endswith("loss") else "max"
    return "max" if greater_is_better else "min"


class _Errors:
    """Wraps `Trainer.train` while watching callbacks live, and tells them by what error it ended."""

    def __init__(self) -> None:
        self._hearing = 0
        self._theirs: Any = None
        self._ours: Any = None

    def hear(self, callback: WatchingCallback) -> None:
        weakref.finalize(callback, self._leave).atexit = False
        self._hearing += 1
        if self._hearing == 1:
            trainer = import_module("transformers").Trainer
            self._theirs, self._ours = trainer.train, _telling(trainer.train)
            trainer.train = self._ours

    def _leave(self) -> None:
        self._hearing -= 1
        trainer = import_module("transformers").Trainer
        if not self._hearing and trainer.train is self._ours:
            trainer.train = self._theirs


def _telling(train: Any) -> Any:
    @functools.wraps(train)
    def train_and_tell(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return train(self, *args, **kwargs)
        except BaseException as error:
            for callback in self.callback_handler.callbacks:
                if isinstance(callback, WatchingCallback):
                    callback._ended_by(error)
            raise

    return train_and_tell


_errors = _Errors()
