"""`tensafe.snapshot`: restored in place, all or nothing, through aliases and ties."""

from __future__ import annotations

import collections
import dataclasses
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tensafe
from tensafe.errors import TensafeError


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(4, 3)
        self.head = nn.Linear(3, 4, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("mask", torch.ones(4), persistent=False)
        self.register_buffer("late", None)
        self.calls = 0
        self.seen: list[Any] = []
        self.running = torch.zeros(2)


def spoil(net: Net) -> None:
    with torch.no_grad():
        for tensor in [*net.parameters(), *net.buffers(), net.running]:
            tensor.add_(7)
    net.calls += 1
    net.seen.append(torch.ones(1))
    net.eval().requires_grad_(False)
    net.late = torch.ones(2)


@pytest.mark.parametrize("lazy", [False, True, None])
def test_module_is_put_back_in_place(lazy: bool | None) -> None:
    net = Net()
    held = [net.embed.weight, net.mask, net.running, net.seen]
    before = [net.embed.weight.detach().clone(), net.mask.clone(), net.running.clone()]
    snap = tensafe.snapshot(net, lazy=lazy)
    for _ in range(2):
        spoil(net)
        snap.restore()
        assert all(
            a is b for a, b in zip(held, [net.head.weight, net.mask, net.running, net.seen], strict=True)
        )
        assert all(torch.equal(a, b) for a, b in zip(held, before, strict=False))
        assert net.embed.weight is net.head.weight
        assert (net.calls, net.seen, net.late) == (0, [], None)
        assert net.training
        assert net.head.training
        assert net.embed.weight.requires_grad
        assert not snap.diff()


def test_tree_is_put_back() -> None:
    @dataclasses.dataclass
    class State:
        step: int
        weight: torch.Tensor

    Pair = collections.namedtuple("Pair", "a b")
    inner = torch.zeros(2)
    rows: collections.deque[Any] = collections.deque([inner, 1])
    names = {"one", "two"}
    tree = {
        "state": State(3, torch.ones(2)),
        "pair": Pair(torch.zeros(1), 5),
        "rows": rows,
        "array": np.arange(3.0),
        "names": names,
        "ordered": collections.OrderedDict(x=1),
        "self": None,
    }
    tree["self"] = tree
    snap = tensafe.snapshot(tree)
    tree["state"].step = 4
    tree["state"].weight.zero_()
    tree["pair"].a.add_(1)
    tree["pair"] = Pair(tree["pair"].a, 6)
    inner.add_(2)
    rows.append("more")
    tree["array"][:] = -1
    names.add("three")
    del tree["ordered"]["x"]
    tree["extra"] = 1
    snap.restore()
    assert tree["state"].step == 3
    assert torch.equal(tree["state"].weight, torch.ones(2))
    assert tree["pair"].b == 5
    assert float(tree["pair"].a) == 0.0
    assert type(tree["pair"]) is Pair
    assert tree["rows"] is rows
    assert list(rows) == [inner, 1]
    assert torch.equal(inner, torch.zeros(2))
    assert tree["array"].tolist() == [0.0, 1.0, 2.0]
    assert tree["names"] is names
    assert names == {"one", "two"}
    assert tree["ordered"] == {"x": 1}
    assert "extra" not in tree
    assert tree["self"] is tree


def test_views_and_gaps() -> None:
    base = torch.arange(12.0)
    tree = {"even": base[::2], "block": base[4:8], "row": base[5:7], "wide": torch.zeros(1).expand(3)}
    snap = tensafe.snapshot(tree)
    base.fill_(-1)
    tree["wide"].as_strided((1,), (1,)).fill_(9)
    snap.restore()
    assert base.tolist() == [0, -1, 2, -1, 4, 5, 6, 7, 8, -1, 10, -1]
    assert tree["wide"].tolist() == [0, 0, 0]


def test_overlapping_views_of_unlike_dtypes() -> None:
    raw = torch.arange(16, dtype=torch.uint8)
    tree = {"raw": raw, "words": raw.view(torch.int32), "tail": raw[5:]}
    snap = tensafe.snapshot(tree)
    assert snap.nbytes == 16
    before = raw.clone()
    words = tree["words"].clone()
    raw.zero_()
    snap.restore()
    assert torch.equal(raw, before)
    assert torch.equal(snap.state_dict()["words"], words)


def test_autograd_notices_a_restore() -> None:
    weight = nn.Parameter(torch.ones(2))
    snap = tensafe.snapshot([weight])
    with torch.no_grad():
        weight.add_(1)
    loss = (weight * weight).sum()
    version = weight._version
    snap.restore()
    assert weight._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_every_alias_of_a_flat_buffer_notices() -> None:
    flat = torch.zeros(6)
    parts = [nn.Parameter(flat[:3]), nn.Parameter(flat[3:])]
    snap = tensafe.snapshot(parts)
    flat.fill_(1)
    versions = [part._version for part in parts]
    snap.restore()
    assert flat.tolist() == [0.0] * 6
    assert all(part._version > version for part, version in zip(parts, versions, strict=True))


def test_state_born_after_the_snapshot_is_removed_and_what_was_lost_is_back() -> None:
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([weight], lr=0.5)
    early = tensafe.snapshot(optimizer)
    weight.sum().backward()
    optimizer.step()
    late = tensafe.snapshot(optimizer)
    moment = optimizer.state[weight]["exp_avg"].clone()
    optimizer.param_groups[0]["lr"] = 9.0
    early.restore()
    assert not optimizer.state
    assert optimizer.param_groups[0]["lr"] == 0.5
    late.restore()
    assert torch.equal(optimizer.state[weight]["exp_avg"], moment)


def test_gradients_of_frozen_parameters() -> None:
    tree = [torch.zeros(1), nn.Parameter(torch.ones(2))]
    tree[1].grad = torch.ones(2)
    tree[1].requires_grad_(False)
    snap = tensafe.snapshot(tree)
    tree[1].grad.add_(1)
    snap.restore()
    assert tree[1].grad.tolist() == [1, 1]
    assert tree[0].grad is None


def test_gradients_are_as_they_were_or_left_alone() -> None:
    weight = nn.Parameter(torch.ones(2))
    with_none, without = tensafe.snapshot([weight]), tensafe.snapshot([weight], grads=False)
    weight.sum().backward()
    gradient = weight.grad
    without.restore()
    assert weight.grad is gradient
    with_one = tensafe.snapshot([weight])
    with_none.restore()
    assert weight.grad is None
    with_one.restore()
    assert weight.grad.tolist() == [1, 1]


def test_into_twins() -> None:
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    first, second = torch.optim.Adam(a.parameters()), torch.optim.Adam(b.parameters())
    a(torch.ones(1, 2)).sum().backward()
    first.step()
    tensafe.snapshot(a, first).restore(b, second)
    assert torch.equal(a.weight, b.weight)
    ours, theirs = first.state[a.weight]["exp_avg"], second.state[b.weight]["exp_avg"]
    assert torch.equal(ours, theirs)
    assert ours.data_ptr() != theirs.data_ptr()


def changed_shape(net: Net) -> None:
    net.mask = torch.ones(5)


def changed_dtype(net: Net) -> None:
    net.mask = net.mask.half()


def new_parameter(net: Net) -> None:
    net.extra = nn.Parameter(torch.ones(1))


def lost_module(net: Net) -> None:
    del net.head


def other_module(net: Net) -> None:
    net.head = nn.Identity()


def new_buffer(net: Net) -> None:
    net.register_buffer("extra", torch.ones(1))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (changed_shape, "net.mask"),
        (changed_dtype, "net.mask"),
        (new_parameter, "net.extra"),
        (lost_module, "net.head"),
        (other_module, "net.head"),
        (new_buffer, "net.extra"),
    ],
)
def test_a_change_of_structure_restores_nothing(change: Any, place: str) -> None:
    net = Net()
    steps = {"count": 1}
    torch.manual_seed(0)
    snap = tensafe.snapshot(steps, tensafe.rng, net)
    with torch.no_grad():
        net.embed.weight.fill_(3)
    net.calls, steps["count"] = 8, 2
    change(net)
    torch.manual_seed(5)
    with pytest.raises(TensafeError) as caught:
        snap.restore()
    assert place in str(caught.value)
    assert "\n" not in str(caught.value)
    assert bool((net.embed.weight == 3).all())
    assert (net.calls, steps) == (8, {"count": 2})
    assert torch.initial_seed() == 5


def test_frozen_memory_restores_nothing() -> None:
    tree = {"a": torch.zeros(2), "b": torch.zeros(2)}
    snap = tensafe.snapshot(tree)
    tree["a"].fill_(1)
    tree["b"].fill_(1)
    tensafe.freeze(tree["b"])
    with pytest.raises(TensafeError, match=r'tree\["b"\] refuses writes'):
        snap.restore()
    assert bool(tree["a"].all())


def test_optimizer_with_another_group_restores_nothing() -> None:
    weight, more = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    snap = tensafe.snapshot([weight], optimizer)
    with torch.no_grad():
        weight.zero_()
    optimizer.add_param_group({"params": [more]})
    with pytest.raises(TensafeError, match=r"optimizer\.param_groups had 1 groups"):
        snap.restore()
    assert not weight.any()


def test_an_object_that_refuses_its_state_leaves_everything() -> None:
    class Counter:
        def __init__(self, broken: bool) -> None:
            self.count, self.broken = 0, broken

        def state_dict(self) -> dict[str, int]:
            return {"count": self.count}

        def load_state_dict(self, state: dict[str, int]) -> None:
            if self.broken and state["count"] == 0:
                raise ValueError("no")
            self.count = state["count"]

    weight, good, bad = torch.zeros(2), Counter(False), Counter(True)
    snap = tensafe.snapshot([weight], good, bad)
    weight.fill_(1)
    good.count = bad.count = 4
    with pytest.raises(TensafeError, match="Counter"):
        snap.restore()
    assert (good.count, bad.count, float(weight.sum())) == (4, 4, 2.0)
    bad.broken = False
    snap.restore()
    assert (good.count, bad.count, float(weight.sum())) == (0, 0, 0.0)


def test_ties_made_since_are_refused_when_values_differ() -> None:
    tree = {"a": torch.zeros(2), "b": torch.ones(2)}
    snap = tensafe.snapshot(tree)
    tree["b"] = tree["a"]
    with pytest.raises(TensafeError, match=r'tree\["b"\]'):
        snap.restore()
    assert tree["b"] is tree["a"]
    tree = {"a": torch.zeros(2)}
    tree["b"] = tree["a"]
    snap = tensafe.snapshot(tree)
    tree["b"] = torch.ones(2)
    tree["a"].fill_(3)
    snap.restore()
    assert torch.equal(tree["a"], torch.zeros(2))
    assert torch.equal(tree["b"], torch.zeros(2))


def test_generators() -> None:
    sources = {
        "torch": torch.Generator().manual_seed(1),
        "python": random.Random(1),
        "numpy": np.random.default_rng(1),
        "legacy": np.random.RandomState(1),
    }

    def draws() -> list[float]:
        return [
            float(torch.rand(1, generator=sources["torch"])),
            sources["python"].gauss(0, 1),
            sources["numpy"].normal(),
            sources["legacy"].normal(),
        ]

    snap = tensafe.snapshot(sources)
    first = draws()
    assert len(snap.diff().values) == 4
    snap.restore()
    assert draws() == first
    snap.update()
    second = draws()
    snap.restore()
    assert draws() == second != first


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_meta_and_uninitialised_tensors_are_named() -> None:
    model = nn.Linear(2, 2, device="meta")
    with pytest.raises(TensafeError, match=r"model\.weight is on the meta device"):
        tensafe.snapshot(model)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    tree = [nested]
    with pytest.raises(TensafeError, match=r"tree\[0\] is a nested tensor"):
        tensafe.snapshot(tree)
    lazy = nn.LazyLinear(2)
    with pytest.raises(TensafeError, match="not initialised"):
        tensafe.snapshot(lazy)
    with pytest.raises(TensafeError, match="nothing to take"):
        tensafe.snapshot(print)
    with pytest.raises(TensafeError, match="snapshot of nothing"):
        tensafe.snapshot()


def test_rollback_only_on_an_error() -> None:
    weight = torch.zeros(2)
    with tensafe.rollback([weight]):
        weight.fill_(1)
    assert float(weight.sum()) == 2.0

    def failing() -> None:
        with tensafe.rollback([weight]) as snap:
            weight.fill_(5)
            assert snap.diff().tensors[0].changed == 2
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        failing()
    assert float(weight.sum()) == 2.0
