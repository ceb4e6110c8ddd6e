"""The callbacks for `transformers.Trainer`, in real trainings."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import tensafe
from integrations.seen import line_of, loud, same

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from tensafe.integrations.transformers import BestWeightsCallback, WatchingCallback  # noqa: E402

SPOILS = "hidden.data.mul_(1.01)  # the bug"
RATES = [0.5, 0.5, -0.5, -0.5]  # uphill from the third epoch on
PLAIN_TRAIN = transformers.Trainer.train


class Net(torch.nn.Module):
    spoils = False
    raises: BaseException | None = None

    def __init__(self, **wishes: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm = torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8)
        self.last = torch.nn.Linear(8, 1)
        self.watched_at: list[bool] = []
        vars(self).update(wishes)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        if self.training:
            self.watched_at.append("add_" in vars(torch.Tensor))
            if self.raises is not None and len(self.watched_at) == 3:
                raise self.raises
        hidden = torch.tanh(self.norm(self.first(x)))
        if self.spoils:
            hidden.data.mul_(1.01)  # the bug
        out = self.last(torch.nn.functional.dropout(hidden, 0.2, self.training))
        return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}


class Keeping(transformers.TrainerCallback):
    """The oracle: copies of the weights and the losses at each evaluation."""

    def __init__(self) -> None:
        self.kept: list[dict[str, torch.Tensor]] = []
        self.losses: list[float] = []

    def on_evaluate(self, *_: Any, model: Any, metrics: dict[str, float], **__: Any) -> None:
        self.kept.append(copy.deepcopy(model.state_dict()))
        self.losses.append(metrics["eval_loss"])


class Data(torch.utils.data.Dataset):
    def __init__(self) -> None:
        self.x = torch.randn(32, 4, generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, at: int) -> dict[str, torch.Tensor]:
        return {"x": self.x[at], "labels": self.x[at].sum().reshape(1) ** 2}


def trainer_of(net: Net, folder: Path, *callbacks: Any, epochs: int = 3, **options: Any) -> Any:
    options = {"eval_strategy": "epoch", **options}
    args = transformers.TrainingArguments(
        output_dir=str(folder / "out"),
        num_train_epochs=epochs,
        per_device_train_batch_size=8,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        **options,
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: RATES[min(step // 4, 3)])
    return transformers.Trainer(
        model=net,
        args=args,
        train_dataset=Data(),
        eval_dataset=Data(),
        callbacks=list(callbacks),
        optimizers=(optimizer, rates),
    )


def test_a_watched_training_gives_the_same_weights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, watched, callback = Net(), Net(), WatchingCallback()
    trainer_of(plain, tmp_path).train()
    rng = torch.get_rng_state()
    trainer_of(watched, tmp_path, callback).train()
    assert same(watched.state_dict(), plain.state_dict())
    assert torch.equal(torch.get_rng_state(), rng)
    assert loud(callback) == []
    assert capsys.readouterr().err.splitlines()[-1].startswith("tensafe: ")
    assert set(plain.watched_at) == {False}
    assert set(watched.watched_at) == {True}
    assert "add_" not in vars(torch.Tensor)


@pytest.mark.parametrize("later", [False, True])
def test_a_bug_is_told_at_its_line(later: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    callback = WatchingCallback(output=tmp_path / "run.json")
    trainer = trainer_of(Net(spoils=True), tmp_path, *([] if later else [callback]))
    if later:
        trainer.add_callback(callback)
    trainer.train()
    assert loud(callback) == [("TS202", __file__, line_of(SPOILS, __file__))]
    assert SPOILS in capsys.readouterr().err
    findings = json.loads((tmp_path / "run.json").read_text())["findings"]
    (finding,) = (one for one in findings if one["code"] == "TS202")
    assert finding["count"] == 3 * 4  # epochs times batches


def test_strict_raises_when_the_training_is_done(tmp_path: Path) -> None:
    net, told = Net(spoils=True), []
    trainer = trainer_of(net, tmp_path, WatchingCallback(strict=True, tell=told.append))
    with pytest.raises(
        tensafe.TensafeError, match=f"silent-gradient-corruption.*:{line_of(SPOILS, __file__)};"
    ):
        trainer.train()
    assert len(net.watched_at) == 12
    assert len(told) == 1


def test_the_first_steps_alone(tmp_path: Path) -> None:
    net, callback = Net(spoils=True), WatchingCallback(steps=2, tell=print)
    trainer_of(net, tmp_path, callback).train()
    assert net.watched_at == [True] * 2 + [False] * 10
    (finding,) = (one for one in callback.findings if one.code == "TS202")
    assert finding.count == 2


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("kind", [KeyError, KeyboardInterrupt])
def test_an_error_leaves_nothing_behind(kind: type[BaseException], later: bool, tmp_path: Path) -> None:
    told: list[str] = []
    raised = kind()
    net, callback = Net(spoils=True, raises=raised), WatchingCallback(tell=told.append)
    trainer = trainer_of(net, tmp_path, *([] if later else [callback]))
    if later:
        trainer.add_callback(callback)
    with pytest.raises(kind) as held:
        trainer.train()
    assert held.value is raised
    assert net.watched_at == [True] * 3
    assert "add_" not in vars(torch.Tensor)
    assert loud(callback) == [("TS202", __file__, line_of(SPOILS, __file__))]
    assert len(told) == 1
    net.raises = None
    trainer.train()  # and it can be used again
    assert len(told) == 2
    assert "add_" not in vars(torch.Tensor)


def test_the_trainer_is_wrapped_while_callbacks_live() -> None:
    gc.collect()
    assert transformers.Trainer.train is PLAIN_TRAIN
    first = WatchingCallback()
    second = pickle.loads(pickle.dumps(first))
    assert transformers.Trainer.train.__wrapped__ is PLAIN_TRAIN
    del first
    gc.collect()
    assert transformers.Trainer.train is not PLAIN_TRAIN
    del second
    gc.collect()
    assert transformers.Trainer.train is PLAIN_TRAIN


def test_it_is_copied_and_pickled(tmp_path: Path) -> None:
    callback = WatchingCallback(select="TS2", tell=print)
    trainer_of(Net(spoils=True), tmp_path, callback).train()
    for twin in (copy.deepcopy(callback), pickle.loads(pickle.dumps(callback))):
        assert loud(twin) == loud(callback) != []
        net = Net(raises=KeyError("theirs"))
        trainer = trainer_of(net, tmp_path, twin, epochs=1)
        with pytest.raises(KeyError):
            trainer.train()
        assert loud(twin) == []
        assert "add_" not in vars(torch.Tensor)


@pytest.mark.parametrize("options", [{}, {"eval_strategy": "steps", "eval_steps": 2}])
def test_the_best_weights_are_put_back(options: dict[str, Any], tmp_path: Path) -> None:
    net, oracle, callback = Net(), Keeping(), BestWeightsCallback()
    trainer = trainer_of(net, tmp_path, callback, oracle, epochs=4, **options)
    trainer.evaluate()  # before the training: not of it
    oracle.kept.clear()
    oracle.losses.clear()
    pointers = {name: parameter.data_ptr() for name, parameter in net.named_parameters()}
    trainer.train()
    place = min(range(len(oracle.losses)), key=oracle.losses.__getitem__)
    assert 0 < place < len(oracle.losses) - 1
    assert not same(oracle.kept[-1], oracle.kept[place])
    assert same(net.state_dict(), oracle.kept[place])
    assert callback.best is not None
    assert callback.best.score == oracle.losses[place]
    assert {name: parameter.data_ptr() for name, parameter in net.named_parameters()} == pointers
    assert trainer.evaluate()["eval_loss"] == pytest.approx(oracle.losses[place])


def test_metric_and_mode_of_the_arguments(tmp_path: Path) -> None:
    net, oracle = Net(), Keeping()
    options = {"metric_for_best_model": "loss", "greater_is_better": True}
    trainer_of(net, tmp_path, BestWeightsCallback(), oracle, epochs=4, **options).train()
    place = max(range(4), key=oracle.losses.__getitem__)
    assert same(net.state_dict(), oracle.kept[place])


def test_one_metric_of_several_data_sets(tmp_path: Path) -> None:
    net, callback = Net(), BestWeightsCallback("b_loss")
    trainer = trainer_of(net, tmp_path, callback, epochs=2)
    trainer.eval_dataset = {"a": Data(), "b": Data(), "c": Data()}
    trainer.train()
    assert callback.best is not None
    assert callback.best.score is not None


def test_a_metric_that_no_evaluation_gives(tmp_path: Path) -> None:
    trainer = trainer_of(Net(), tmp_path, BestWeightsCallback("accuracy"))
    with pytest.raises(tensafe.TensafeError, match=r"'eval_accuracy'\): no such metric .*eval_loss"):
        trainer.train()


def test_a_training_that_judges_nothing_says_so(tmp_path: Path) -> None:
    trainer = trainer_of(Net(), tmp_path, BestWeightsCallback(), epochs=1, eval_strategy="no")
    with pytest.warns(UserWarning, match="eval_loss gave no number"):
        trainer.train()


def test_both_at_once_find_nothing_of_ours(tmp_path: Path) -> None:
    net, oracle, watching = Net(), Keeping(), WatchingCallback(tell=print)
    trainer_of(net, tmp_path, BestWeightsCallback(), oracle, watching, epochs=4).train()
    assert loud(watching) == []
    assert same(net.state_dict(), oracle.kept[oracle.losses.index(min(oracle.losses))])


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_tensafe_imports_no_trainer() -> None:
    libraries = "{'lightning', 'pytorch_lightning', 'transformers', 'accelerate'}"
    done = python(f"import sys, tensafe, tensafe.integrations; print({libraries} & set(sys.modules))")
    assert done.stdout == "set()\n", done.stderr


@pytest.mark.parametrize(
    ("module", "absent"),
    [("lightning", ["lightning", "pytorch_lightning"]), ("transformers", ["transformers"])],
)
def test_without_the_library_it_says_which(module: str, absent: list[str]) -> None:
    gone = "".join(f"sys.modules[{name!r}] = None;" for name in absent)
    done = python(f"import sys;{gone}import tensafe.integrations.{module}")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: tensafe.integrations.{module} needs {module}: pip install")
