"""Real bugs with live references (`tests/cases`): what each was after, by a call of ours; BestWeights."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tensafe
from tensafe.errors import TensafeError


def test_optimizer_state_transplant_aliases() -> None:
    first = nn.Linear(3, 1)
    donor = torch.optim.Adam(first.parameters(), lr=0.1)

    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        model(torch.randn(8, 3)).pow(2).mean().backward()
        optimizer.step()

    step(first, donor)
    second = copy.deepcopy(first)
    heir = torch.optim.Adam(second.parameters(), lr=0.1)
    tensafe.snapshot(donor).restore(heir)
    moment = heir.state[second.weight]["exp_avg"].clone()
    assert torch.equal(moment, donor.state[first.weight]["exp_avg"])
    step(first, donor)
    assert torch.equal(heir.state[second.weight]["exp_avg"], moment)


def test_early_stopping_keeps_live_state_dict() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    x = torch.randn(64, 6)
    y = x[:, :1] - 0.5 * x[:, 1:2]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

    def score() -> float:
        with torch.no_grad():
            return F.mse_loss(net(x), y).item()

    best = tensafe.BestWeights(net, patience=3)
    scores = []
    for _ in range(40):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= 1.35
        scores.append(score())
        best.update(scores[-1])
        if best.should_stop:
            break
    assert score() > min(scores)
    best.restore()
    assert score() == min(scores) == best.score
    assert len(scores) == scores.index(min(scores)) + 4


def test_broadcast_live_state_to_clients() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    message = tensafe.snapshot(model).state_dict()
    starts = []
    for target in (2.0, 4.0, -1.0):
        model.load_state_dict(message)
        starts.append(model.weight.item())
        with torch.no_grad():
            model.weight.fill_(target)
    assert starts == [1.0, 1.0, 1.0]


def test_fedprox_global_params_alias() -> None:
    model = nn.Linear(5, 3)
    received = tensafe.snapshot(model)
    start = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    F.cross_entropy(model(torch.randn(8, 5)), torch.randint(0, 3, (8,))).backward()
    optimizer.step()
    drift = [p - g for p, g in zip(model.parameters(), received.state_dict().values(), strict=True)]
    assert all(bool(one.abs().sum() > 0) for one in drift)
    assert all(torch.equal(a, b) for a, b in zip(received.state_dict().values(), start, strict=True))


def test_ddqn_target_is_online_net() -> None:
    online = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    target = tensafe.deepcopy(online)
    probe = torch.randn(3, 4)
    before = target(probe)
    with torch.no_grad():
        online[0].weight.add_(1)
    assert torch.equal(target(probe), before)
    tensafe.snapshot(online, grads=False).restore(target)
    assert torch.equal(target(probe), online(probe))
    assert target[0].weight.data_ptr() != online[0].weight.data_ptr()


def weights(value: float) -> Any:
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, value)
    return layer


@pytest.mark.parametrize(("mode", "expected"), [("min", 2.0), ("max", 3.0)])
def test_best_weights(mode: Any, expected: float) -> None:
    layer = weights(0.0)
    best = tensafe.BestWeights(layer, mode=mode)
    for value, score in [
        (1.0, float("nan")),
        (2.0, 1.0),
        (3.0, torch.tensor(5.0)),
        (4.0, float("nan")),
        (5.0, 3.0),
    ]:
        nn.init.constant_(layer.weight, value)
        best.update(score)
    layer.eval()
    best.restore()
    assert layer.weight.item() == expected
    assert not layer.training
    assert best.score == {"min": 1.0, "max": 5.0}[mode]
    assert not best.should_stop


def test_patience_counts_updates_that_bring_nothing() -> None:
    best = tensafe.BestWeights(weights(0.0), patience=2, min_delta=0.1)
    with pytest.raises(TensafeError, match="no best weights yet"):
        best.restore()
    told = [(best.update(score), best.should_stop) for score in (1.0, 0.95, 0.8, float("nan"), 0.9, 0.1)]
    assert told == [
        (True, False),
        (False, False),
        (True, False),
        (False, False),
        (False, True),
        (True, False),
    ]
    with pytest.raises(TensafeError, match="mode="):
        tensafe.BestWeights(weights(0.0), mode="low")  # type: ignore[arg-type]
