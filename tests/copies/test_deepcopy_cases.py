"""Real bugs with copies (`tests/cases`): what each program was after, by a call of ours."""

from __future__ import annotations

import copy
import threading
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tensafe


def weight_normed(layer: nn.Module) -> nn.Module:
    """With the older hook, which keeps the computed weight, a non-leaf, on the module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return nn.utils.weight_norm(layer)


def test_deepcopy_of_weight_normed_layer() -> None:
    online = nn.Sequential(weight_normed(nn.Linear(2, 3)), nn.Tanh(), nn.Linear(3, 1))
    with pytest.raises(RuntimeError):
        copy.deepcopy(online)
    target = tensafe.deepcopy(online, graph="cut")
    x = torch.randn(4, 2)
    assert torch.equal(target(x), online(x))
    with torch.no_grad():
        online[0].weight_g.mul_(2.0)
    assert not torch.equal(target(x), online(x))


def test_weight_norm_module_deepcopy_raises() -> None:
    layer = weight_normed(nn.Linear(4, 3))
    members = nn.ModuleList(tensafe.deepcopy(layer, graph="cut") for _ in range(2))
    members[0](torch.ones(1, 4)).sum().backward()
    assert members[0].weight_v.grad is not None
    assert members[1].weight_v.grad is None
    assert layer.weight_v.grad is None


class Backbone(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.last_map: torch.Tensor | None = None

    def forward(self, img: torch.Tensor) -> torch.Tensor:
        self.last_map = self.conv(img)
        return self.last_map.mean(dim=(2, 3))


def test_ema_copy_of_model_with_cached_output() -> None:
    model = Backbone()
    model(torch.rand(2, 1, 8, 8))
    shadow = tensafe.deepcopy(model, graph="cut").eval().requires_grad_(False)
    for average, p in zip(shadow.parameters(), model.parameters(), strict=True):
        average.lerp_(p, 0.01)
    model.last_map.sum().backward()  # type: ignore[union-attr]
    assert model.conv.weight.grad is not None


class CallCounter:
    def __init__(self) -> None:
        self.lock = threading.Lock()


class Served(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(2, 2)
        self.counter = CallCounter()


def test_lock_attribute_blocks_deepcopy() -> None:
    """Weight averaging needs the weights, not the model with its lock."""
    model = Served()
    average = tensafe.copy(model.state_dict())
    with torch.no_grad():
        model.net.weight.add_(1.0)
    average["net.weight"].lerp_(model.net.weight.detach(), 0.5)
    assert torch.allclose(average["net.weight"], model.net.weight - 0.5)
    with pytest.raises(TypeError, match="lock"):
        tensafe.deepcopy(model)


def test_validation_deepcopies_whole_model() -> None:
    """A model to receive the averaged weights, without a second copy of the weights."""
    model = nn.Sequential(nn.Linear(50, 50), nn.Linear(50, 50))
    averages = [p.detach() * 0.5 for p in model.parameters()]
    before = tensafe.copy(model.state_dict())
    shell = tensafe.copy(model, memory="share")
    storages = {p.untyped_storage().data_ptr() for p in model.parameters()}
    assert {p.untyped_storage().data_ptr() for p in shell.parameters()} == storages
    for p, average in zip(shell.parameters(), averages, strict=True):
        p.data = average
    x = torch.ones(1, 50)
    assert not torch.equal(shell(x), model(x))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


class FlatModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("flat", torch.zeros(8))
        self.weight = nn.Parameter(self.flat[:6].view(2, 3))
        self.bias = nn.Parameter(self.flat[6:])


def test_deepcopy_unlinks_flat_parameter_buffer() -> None:
    online = FlatModule()
    for average in (tensafe.deepcopy(online), tensafe.compact(online), tensafe.copy(online)):
        online.flat.fill_(1.0)
        average.flat.lerp_(online.flat, 0.5)
        assert average.bias.tolist() == [0.5, 0.5]
        online.flat.fill_(0.0)


class RunningStats(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(2))
        self.table = {"mean": self.mean}


def test_buffer_table_stale_after_conversion() -> None:
    """The dictionary of buffers holds the copy's own buffers; its conversion is seen by `overlap`."""
    copied = tensafe.deepcopy(RunningStats())
    assert copied.table["mean"] is copied.mean
    copied.double()
    assert tensafe.overlap(copied.table["mean"], copied.mean) is None


def test_tied_checkpoint_last_key_wins() -> None:
    """A copied checkpoint keeps what is tied tied and what is apart apart, so that a tie can be asked for."""
    tied = nn.Linear(4, 6, bias=False)
    model = nn.ModuleDict({"out": tied, "into": nn.Embedding(6, 4, _weight=tied.weight)})
    checkpoint = tensafe.copy(model.state_dict())
    assert tensafe.overlap(checkpoint["out.weight"], checkpoint["into.weight"]) is not None
    apart = tensafe.copy({"out.weight": torch.rand(6, 4), "into.weight": torch.rand(6, 4)})
    assert tensafe.overlap(apart["out.weight"], apart["into.weight"]) is None


def test_batch_copied_twice_on_the_way_to_torch() -> None:
    """One copy, not three: an array becomes a tensor, and back, with none."""
    batch = np.random.default_rng(0).random((256, 4000), dtype=np.float32)
    tracemalloc.start()
    tensor = tensafe.copy(torch.from_numpy(batch))
    array = tensafe.to_numpy(tensor)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < batch.nbytes
    assert np.array_equal(array, batch)
    assert not np.shares_memory(array, batch)


def test_clone_after_gather_by_index_tensor() -> None:
    """The plan says that the gathered rows share nothing with the table: no clone is needed."""
    table = torch.zeros(40, 7)
    gathered = table[torch.randperm(40)[:10]]
    plan: Any = tensafe.plan({"table": table, "gathered": gathered})
    assert [len(storage.views) for storage in plan.storages] == [1, 1]
    assert len(tensafe.plan({"table": table, "rows": table[:10]}).storages) == 1
