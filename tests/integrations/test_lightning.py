"""The callbacks for lightning and pytorch_lightning, in real fits."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import tensafe
from integrations.seen import line_of, loud, same

lightning = pytest.importorskip("lightning.pytorch")
pytorch_lightning = pytest.importorskip("pytorch_lightning")

from tensafe.integrations.lightning import BestWeightsCallback, WatchingCallback  # noqa: E402

PACKAGES = {"lightning": lightning, "pytorch_lightning": pytorch_lightning}
SPOILS = "hidden.data.mul_(1.01)  # the bug"
RATES = [0.01, 0.01, -0.01, -0.01]  # uphill from the third epoch on


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest) -> Any:
    return PACKAGES[request.param]


def net_of(package: Any, **wishes: Any) -> Any:
    """A small module of that package; `wishes` are attributes."""

    class Net(package.LightningModule):
        spoils = False
        raises: BaseException | None = None
        watched_at: list[bool]

        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.first, self.norm = torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8)
            self.last = torch.nn.Linear(8, 1)
            self.register_buffer("cache", torch.zeros(1), persistent=False)
            self.watched_at, self.kept, self.losses = [], [], []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden = torch.tanh(self.norm(self.first(x)))
            if self.spoils:
                hidden.data.mul_(1.01)  # the bug
            return self.last(torch.nn.functional.dropout(hidden, 0.2, self.training))

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            self.watched_at.append("add_" in vars(torch.Tensor))
            if self.raises is not None and index == 2:
                raise self.raises
            self.cache = torch.zeros(len(self.watched_at))
            return torch.nn.functional.mse_loss(self(batch[0]), batch[1])

        def validation_step(self, batch: Any, index: int) -> None:
            self.log("val_loss", torch.nn.functional.mse_loss(self(batch[0]), batch[1]))

        def on_validation_epoch_end(self) -> None:
            if not self.trainer.sanity_checking:
                self.kept.append(copy.deepcopy(self.state_dict()))
                self.losses.append(float(self.trainer.callback_metrics["val_loss"]))

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
            rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: RATES[min(epoch, 3)])
            return {"optimizer": optimizer, "lr_scheduler": rates}

    net = Net()
    for name, value in wishes.items():
        setattr(net, name, value)
    return net


def fit(package: Any, net: Any, *callbacks: Any, epochs: int = 3, **options: Any) -> Any:
    torch.manual_seed(1)
    x = torch.randn(32, 4)
    data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True) ** 2)
    loader = torch.utils.data.DataLoader(data, batch_size=8)
    quiet = dict.fromkeys(("enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs: few workers, few batches
        trainer = package.Trainer(
            max_epochs=epochs,
            callbacks=list(callbacks),
            logger=False,
            accelerator="cpu",
            log_every_n_steps=1,
            **quiet,
            **options,
        )
        trainer.fit(net, loader, loader)
    return trainer


def test_a_watched_fit_gives_the_same_weights(package: Any, capsys: pytest.CaptureFixture[str]) -> None:
    plain, watched, callback = net_of(package), net_of(package), WatchingCallback()
    fit(package, plain)
    rng = torch.get_rng_state()
    fit(package, watched, callback)
    assert same(watched.state_dict(), plain.state_dict())
    assert torch.equal(torch.get_rng_state(), rng)
    assert loud(callback) == []
    assert capsys.readouterr().err.splitlines()[-1].startswith("tensafe: ")
    assert set(plain.watched_at) == {False}
    assert set(watched.watched_at) == {True}
    assert "add_" not in vars(torch.Tensor)


def test_a_bug_is_told_at_its_line(package: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    output = tmp_path / "run.json"
    callback = WatchingCallback(output=output)
    fit(package, net_of(package, spoils=True), callback)
    assert loud(callback) == [("TS202", __file__, line_of(SPOILS, __file__))]
    told = capsys.readouterr().err
    assert "error[TS202]" in told
    assert SPOILS in told
    (finding,) = (one for one in json.loads(output.read_text())["findings"] if one["code"] == "TS202")
    assert finding["count"] == 3 * 4  # epochs times batches


def test_it_is_told_where_one_asks(package: Any, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []
    fit(package, net_of(package, spoils=True), WatchingCallback(tell=told.append, select="TS2"), epochs=1)
    assert len(told) == 1
    assert "TS202" in told[0]
    assert "TS202" not in capsys.readouterr().err


def test_strict_raises_when_the_fit_is_done(package: Any) -> None:
    net, told = net_of(package, spoils=True), []
    with pytest.raises(
        tensafe.TensafeError, match=f"silent-gradient-corruption.*:{line_of(SPOILS, __file__)};"
    ):
        fit(package, net, WatchingCallback(strict=True, tell=told.append))
    assert len(net.watched_at) == 12
    assert len(told) == 1
    fit(package, net_of(package), WatchingCallback(strict=True, tell=told.append), epochs=1)


def test_the_first_steps_alone(package: Any) -> None:
    net, callback = net_of(package, spoils=True), WatchingCallback(steps=2, tell=print)
    fit(package, net, callback)
    assert net.watched_at == [True] * 2 + [False] * 10
    (finding,) = (one for one in callback.findings if one.code == "TS202")
    assert finding.count == 2


@pytest.mark.parametrize(("raised", "seen"), [(KeyError, KeyError), (KeyboardInterrupt, SystemExit)])
def test_an_error_leaves_nothing_behind(
    package: Any, raised: type[BaseException], seen: type[BaseException]
) -> None:
    told: list[str] = []
    callback = WatchingCallback(tell=told.append)
    net = net_of(package, spoils=True, raises=raised())
    with pytest.raises(seen):
        fit(package, net, callback)
    assert net.watched_at == [True] * 3
    assert "add_" not in vars(torch.Tensor)
    assert loud(callback) == [("TS202", __file__, line_of(SPOILS, __file__))]
    assert len(told) == 1
    net.raises = None
    fit(package, net, callback, epochs=1)  # and it can be used again
    assert len(told) == 2
    assert "add_" not in vars(torch.Tensor)


def test_a_fit_that_a_tuner_cuts_short_leaves_nothing_behind(package: Any) -> None:
    module = sys.modules[f"{package.__name__}.utilities.exceptions"]
    net = net_of(package, raises=module._TunerExitException())
    fit(package, net, WatchingCallback(tell=print))
    assert net.watched_at == [True] * 3
    assert "add_" not in vars(torch.Tensor)


def test_it_is_copied_and_pickled(package: Any) -> None:
    callback = WatchingCallback(select="TS2", tell=print)
    fit(package, net_of(package, spoils=True), callback, epochs=1)
    for twin in (copy.deepcopy(callback), pickle.loads(pickle.dumps(callback))):
        assert loud(twin) == loud(callback) != []
        assert "Net" not in repr(vars(twin))
        fit(package, net_of(package), twin, epochs=1)
        assert loud(twin) == []
    assert loud(callback)


def test_mistakes_are_told_when_it_is_made() -> None:
    for wrong in ({"steps": 0}, {"steps": "3"}, {"steps": 2.5}, {"steps": True}, {"select": "TS9"}):
        with pytest.raises(tensafe.TensafeError, match=r"TS9|steps="):
            WatchingCallback(**wrong)
    with pytest.raises(tensafe.TensafeError, match="mode="):
        BestWeightsCallback("val_loss", "lowest")  # type: ignore[arg-type]


def test_a_file_that_cannot_be_written_is_refused_before_the_fit(package: Any, tmp_path: Path) -> None:
    net = net_of(package)
    with pytest.raises(tensafe.TensafeError, match="cannot write"):
        fit(package, net, WatchingCallback(output=tmp_path / "missing" / "run.json"))
    assert net.watched_at == []
    assert "add_" not in vars(torch.Tensor)


@pytest.mark.parametrize("raised", [None, KeyError])
def test_a_file_that_goes_away_costs_no_training_and_no_error(
    package: Any, raised: type[Exception] | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    callback = WatchingCallback(output=folder / "run.json", tell=lambda _: folder.rmdir())
    with pytest.raises(raised) if raised else contextlib.nullcontext():
        fit(package, net_of(package, raises=raised() if raised else None), callback)
    assert "tensafe: cannot write " in capsys.readouterr().err


def best_of(net: Any) -> int:
    return min(range(len(net.losses)), key=net.losses.__getitem__)


@pytest.mark.parametrize("options", [{}, {"val_check_interval": 0.5}, {"check_val_every_n_epoch": 2}])
def test_the_best_weights_are_put_back(package: Any, options: dict[str, Any]) -> None:
    net, callback = net_of(package), BestWeightsCallback("val_loss")
    pointers = {name: parameter.data_ptr() for name, parameter in net.named_parameters()}
    fit(package, net, callback, epochs=4, **options)
    place = best_of(net)
    assert 0 < place < len(net.kept) - 1 or "check_val_every_n_epoch" in options
    assert not same(net.kept[-1], net.kept[place])
    assert same(net.state_dict(), net.kept[place])
    assert callback.best is not None
    assert callback.best.score == net.losses[place]
    assert len(net.cache) == len(net.watched_at)  # what is no weight stays as it was
    assert {name: parameter.data_ptr() for name, parameter in net.named_parameters()} == pointers


def test_the_best_of_max_and_later(package: Any) -> None:
    net, callback = net_of(package), BestWeightsCallback("val_loss", "max", restore=False)
    fit(package, net, callback, epochs=4)
    place = max(range(4), key=net.losses.__getitem__)
    assert same(net.state_dict(), net.kept[-1])
    callback.restore()
    assert same(net.state_dict(), net.kept[place])
    twin = copy.deepcopy(callback)
    with pytest.raises(tensafe.TensafeError, match="no best weights"):
        twin.restore()


def test_a_metric_that_nobody_logs(package: Any) -> None:
    with pytest.raises(tensafe.TensafeError, match=r"'val_acc'\): no such metric .*: val_loss$"):
        fit(package, net_of(package), BestWeightsCallback("val_acc"), epochs=1)


def test_a_fit_that_judges_nothing_says_so(package: Any) -> None:
    net = net_of(package)
    callback = BestWeightsCallback("val_loss")
    callback.on_fit_start(None, net)
    with pytest.warns(UserWarning, match="val_loss gave no number"):
        callback.on_fit_end(None, net)


def test_both_at_once_find_nothing_of_ours(package: Any) -> None:
    net, watching = net_of(package), WatchingCallback(tell=print)
    fit(package, net, watching, BestWeightsCallback("val_loss"), epochs=4)
    assert loud(watching) == []
    assert same(net.state_dict(), net.kept[best_of(net)])


SPAWNED = """
import {package} as L
import torch
from tensafe.integrations.lightning import BestWeightsCallback, WatchingCallback


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        hidden = torch.tanh(self.layer(batch[0]))
        hidden.data.mul_(1.01)
        loss = hidden.sum()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(16, 4)), batch_size=4)
    callbacks = [WatchingCallback(strict={strict}), BestWeightsCallback("loss")]
    trainer = L.Trainer(max_epochs=2, callbacks=callbacks, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, accelerator="cpu", {options})
    trainer.fit(Net(), loader)
"""


def run(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(text)
    command = [sys.executable, "-W", "ignore", str(program)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.program
def test_spawned_ranks_are_told_once_by_rank_0(tmp_path: Path) -> None:
    options = "strategy='ddp_spawn', devices=2"
    done = run(SPAWNED.format(package="lightning", strict=True, options=options), tmp_path)
    assert done.stderr.count("error[TS202]") == 1, done.stderr
    assert "(seen 8 times by rank 0, rank 1)" in done.stderr
    assert done.returncode == 1
    assert "TensafeError: tensafe found silent-gradient-corruption" in done.stderr


@pytest.mark.program
@pytest.mark.parametrize("name", PACKAGES)
def test_one_package_alone(name: str, tmp_path: Path) -> None:
    """Ours imported before theirs, and the other one not there at all."""
    other = next(package for package in PACKAGES if package != name)
    absent = f"import sys; sys.modules[{other!r}] = None\nfrom tensafe.integrations import lightning\n"
    done = run(absent + SPAWNED.format(package=name, strict=False, options=""), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("error[TS202]") == 1
