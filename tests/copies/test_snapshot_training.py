"""A run that takes a snapshot, diverges and restores goes on bit for bit as one that never diverged."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tensafe

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": lambda p, **how: torch.optim.SGD(p, lr=0.1, momentum=0.9, **how),
    "Adam": lambda p, **how: torch.optim.Adam(p, lr=0.01, amsgrad=True, **how),
    "AdamW": lambda p, **how: torch.optim.AdamW(p, lr=0.01, **how),
}
IMPLEMENTATIONS: dict[str, dict[str, bool]] = {
    "default": {},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}


class Run:
    """A training run that draws from every global source of random numbers."""

    def __init__(self, name: str, how: dict[str, bool]) -> None:
        torch.manual_seed(1)
        random.seed(2)
        np.random.seed(3)
        layers = [nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 6)]
        self.model = nn.Sequential(*layers)
        self.model[3].weight = nn.Parameter(torch.randn(6, 8))
        self.optimizer = OPTIMIZERS[name](self.model.parameters(), **how)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, max_lr=0.1, total_steps=50)

    def parts(self) -> tuple[Any, ...]:
        return self.model, self.optimizer, self.scheduler, tensafe.rng

    def steps(self, count: int) -> list[float]:
        losses = []
        for _ in range(count):
            x = torch.randn(5, 6) * random.random() + torch.from_numpy(np.random.randn(5, 6)).float()
            self.optimizer.zero_grad()
            loss = self.model(x).pow(2).mean()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            losses.append(loss.item())
        return losses

    def everything(self) -> list[Any]:
        """All numbers of the run, by the objects' own words."""
        state = self.optimizer.state_dict()
        moments = [value for one in state["state"].values() for value in one.values()]
        rates = [(group["lr"], group.get("momentum"), group.get("betas")) for group in state["param_groups"]]
        gradients = [p.grad for p in self.model.parameters()]
        draws = (torch.rand(3), random.random(), float(np.random.rand()))
        return [
            *self.model.state_dict().values(),
            *moments,
            *gradients,
            rates,
            self.scheduler.get_last_lr(),
            *draws,
        ]


def assert_bit_equal(a: list[Any], b: list[Any]) -> None:
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        if isinstance(x, torch.Tensor):
            assert torch.equal(x, y)
        else:
            assert x == y


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("how", IMPLEMENTATIONS)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("before", [0, 3])
def test_restored_run_goes_on_bit_for_bit(name: str, how: str, lazy: bool | None, before: int) -> None:
    straight = Run(name, IMPLEMENTATIONS[how])
    straight.steps(before)
    losses = straight.steps(4)
    end = straight.everything()

    run = Run(name, IMPLEMENTATIONS[how])
    run.steps(before)
    snap = tensafe.snapshot(*run.parts(), lazy=lazy)
    held = [id(p) for group in run.optimizer.param_groups for p in group["params"]]
    for _ in range(2):
        run.steps(5)
        run.model.eval()
        snap.restore()
        assert run.model.training
        assert held == [id(p) for group in run.optimizer.param_groups for p in group["params"]]
        assert held == [id(p) for p in run.model.parameters()]
        assert run.steps(4) == losses
        assert_bit_equal(run.everything(), end)


@pytest.mark.parametrize("lazy", [False, True])
def test_updated_snapshot_restores_to_the_later_moment(lazy: bool) -> None:
    straight = Run("AdamW", {})
    straight.steps(8)
    losses = straight.steps(3)
    run = Run("AdamW", {})
    snap = tensafe.snapshot(*run.parts(), lazy=lazy)
    for _ in range(4):
        run.steps(2)
        snap.update()
    run.steps(7)
    snap.restore()
    assert run.steps(3) == losses


def test_file_goes_on_bit_for_bit_in_fresh_objects(tmp_path: Any) -> None:
    straight = Run("AdamW", {})
    straight.steps(3)
    tensafe.snapshot(*straight.parts()).save(tmp_path / "run.safetensors")
    losses = straight.steps(4)
    end = straight.everything()

    fresh = Run("AdamW", {})
    torch.manual_seed(99)
    tensafe.Snapshot.load(tmp_path / "run.safetensors").restore(*fresh.parts())
    assert fresh.steps(4) == losses
    assert_bit_equal(fresh.everything(), end)


def test_gradients_half_way_through_an_accumulation() -> None:
    model = nn.Linear(3, 1)
    model(torch.ones(1, 3)).sum().backward()

    def interrupted() -> None:
        with tensafe.rollback(model):
            model(torch.full((1, 3), 5.0)).sum().backward()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert torch.equal(model.weight.grad, torch.ones(1, 3))


def test_scaler_state() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    snap = tensafe.snapshot(scaler)
    scaler.scale((weight * torch.inf).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0
    snap.restore()
    assert scaler.get_scale() == 4.0
