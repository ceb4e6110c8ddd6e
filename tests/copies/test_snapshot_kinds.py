"""Snapshots of every kind of tensor, lazy and not; who may write past a lazy one; no memory taken twice."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tensafe


def quantised(value: float) -> torch.Tensor:
    return torch.quantize_per_tensor(torch.full((3,), value), 0.5, 0, torch.qint8)


pytestmark = pytest.mark.filterwarnings("ignore:.*(quantize|CSR|quantized)")


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch's, on quantised and compressed tensors
    UNUSUAL = {"rows": torch.eye(3).to_sparse_csr(), "quantised": quantised(1.0)}

KINDS: dict[str, Any] = {
    "dense": torch.randn(3, 4),
    "scalar": torch.tensor(2.0),
    "empty": torch.empty(0),
    "channels last": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
    "transposed": torch.randn(3, 4).t(),
    "strided": torch.randn(8)[::3],
    "conjugate": torch.randn(3, dtype=torch.complex64).conj(),
    "sparse": torch.eye(3).to_sparse(),
    **UNUSUAL,
    "parameter": nn.Parameter(torch.randn(3)),
    "bool": torch.tensor([True, False]),
}


def doubled(one: torch.Tensor) -> torch.Tensor:
    return ~one if one.dtype is torch.bool else one * 2


def dense(one: torch.Tensor) -> torch.Tensor:
    one = one.detach()
    return (
        one.dequantize() if one.is_quantized else one.to_dense() if one.layout is not torch.strided else one
    )


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind: str, lazy: bool) -> None:
    one = KINDS[kind].clone() if kind not in ("parameter", "strided", "conjugate") else KINDS[kind]
    before = dense(one).clone()
    tree = [one]
    snap = tensafe.snapshot(tree, lazy=lazy)
    other = quantised(3.0) if kind == "quantised" else doubled(one.detach())
    for _ in range(2):
        with torch.no_grad():
            one.copy_(other)
        assert bool(snap.diff()) == (kind != "empty")
        snap.restore()
        assert tree[0] is one
        assert torch.equal(dense(one), before)
        assert not snap.diff()
    with torch.no_grad():
        one.copy_(other)
    snap.update()
    assert not snap.diff()
    assert torch.equal(dense(snap.state_dict()[0]), dense(one))


def test_inference_tensors() -> None:
    with torch.inference_mode():
        one = torch.zeros(3)
    snap = tensafe.snapshot([one])
    with torch.inference_mode():
        one.add_(1)
    snap.restore()
    assert not one.any()
    with torch.inference_mode():
        made = tensafe.snapshot([torch.zeros(3)]).state_dict()[0]
    assert not made.is_inference()


def test_dtensor_shards(tmp_path: Any) -> None:
    distributed = pytest.importorskip("torch.distributed")
    tensors = pytest.importorskip("torch.distributed.tensor")
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        mesh = distributed.device_mesh.init_device_mesh("cpu", (1,))
        layer = nn.Linear(4, 2)
        for name, p in list(layer.named_parameters()):
            shard = tensors.distribute_tensor(p.detach(), mesh, [tensors.Shard(0)])
            layer.register_parameter(name, nn.Parameter(shard))
        optimizer = torch.optim.Adam(layer.parameters(), foreach=False)
        x = tensors.distribute_tensor(torch.ones(3, 4), mesh, [tensors.Replicate()])
        layer(x).sum().backward()
        optimizer.step()
        weight, local = layer.weight, layer.weight.to_local().clone()
        moment = optimizer.state[weight]["exp_avg"].to_local().clone()
        snap = tensafe.snapshot(layer, optimizer)
        version = weight._version
        for _ in range(2):
            optimizer.zero_grad()
            layer(x).pow(2).sum().backward()
            optimizer.step()
            snap.restore()
            assert layer.weight is weight
            assert weight._version > version
            assert torch.equal(weight.to_local(), local)
            assert torch.equal(optimizer.state[weight]["exp_avg"].to_local(), moment)
        snap.save(tmp_path / "s")
        with torch.no_grad():
            weight.zero_()
        tensafe.Snapshot.load(tmp_path / "s").restore(layer, optimizer)
        assert torch.equal(weight.to_local(), local)
    finally:
        distributed.destroy_process_group()


def is_lazy(one: torch.Tensor) -> bool:
    return bool(torch._C._is_cow_tensor(one))


def test_a_lazy_copy_takes_no_bytes_until_somebody_writes() -> None:
    model = nn.Linear(4, 4)
    snap = tensafe.snapshot(model, lazy=True)
    assert is_lazy(model.weight)
    before = model.weight.detach().clone()
    assert is_lazy(model.weight)
    with torch.no_grad():
        model.weight.add_(1)
    assert not is_lazy(model.weight)
    assert is_lazy(model.bias)
    snap.restore()
    assert torch.equal(model.weight, before)
    if hasattr(torch.Tensor, "const_data_ptr"):  # without it, what was not written cannot be told
        assert is_lazy(model.bias)


def test_lazy_none_takes_frozen_parameters_lazily() -> None:
    model = nn.Linear(4, 4)
    model.weight.requires_grad_(False)
    tensafe.snapshot(model)
    assert is_lazy(model.weight)
    assert not is_lazy(model.bias)
    tensafe.snapshot(model, lazy=False)


@pytest.mark.parametrize("lazy", [True, None])
def test_memory_that_was_handed_out_is_copied(lazy: bool | None) -> None:
    exported, foreign, shared = torch.zeros(3), torch.from_numpy(np.zeros(3)), torch.zeros(3).share_memory_()
    array = exported.numpy()
    tree = [exported, foreign, shared]
    snap = tensafe.snapshot(tree, lazy=lazy)
    array[:] = 1
    foreign.numpy()[:] = 1
    shared.fill_(1)
    for one in snap.state_dict():
        assert not one.any()
    snap.update()
    array[:] = 2
    assert snap.state_dict()[0].tolist() == [1, 1, 1]
    snap.restore()
    assert array.tolist() == [1, 1, 1]


def test_an_exported_tensor_alone_is_copied() -> None:
    one = torch.zeros(3)
    array = one.numpy()
    snap = tensafe.snapshot([one], lazy=True)
    array[:] = 1
    assert not snap.state_dict()[0].any()


def test_update_sees_a_view_that_left_its_storage() -> None:
    flat = torch.zeros(6)
    parts = [flat[:3], flat[3:]]
    snap = tensafe.snapshot(parts)
    parts[0].data = torch.ones(3)
    snap.update()
    assert snap.state_dict()[0].tolist() == [1, 1, 1]
    parts[0].zero_()
    snap.restore()
    assert parts[0].tolist() == [1, 1, 1]


def test_update_writes_into_the_same_memory() -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        model(torch.ones(1, 4)).sum().backward()
        optimizer.step()

    step()
    snap = tensafe.snapshot(model, optimizer)
    places = [one.data_ptr() for one in [*snap._copies.saved, *snap._grads.saved]]
    step()
    snap.update()
    model.more = nn.Linear(1, 1)
    optimizer.param_groups[0]["lr"] = 0.5
    snap.update()
    assert set(places) <= {one.data_ptr() for one in [*snap._copies.saved, *snap._grads.saved]}
    assert not snap.diff()
    optimizer.param_groups[0]["lr"] = 0.6
    snap.update()
    optimizer.param_groups[0]["lr"] = 0.7
    snap.restore()
    assert optimizer.param_groups[0]["lr"] == 0.6


def new_data(model: nn.Linear) -> None:
    model.weight.data = torch.full((3, 2), 2.0)


def half(model: nn.Linear) -> None:
    model.half()


def new_parameter(model: nn.Linear) -> None:
    model.weight = nn.Parameter(torch.full((2, 2), 3.0))


def plain_attribute(model: nn.Linear) -> None:
    model.note = {"a": 1}


def tied(model: nn.Linear) -> None:
    model.bias = nn.Parameter(model.weight.detach()[0])


@pytest.mark.parametrize("change", [new_data, half, new_parameter, plain_attribute, tied])
def test_update_sees_what_changed_place(change: Any) -> None:
    model = nn.Linear(2, 2)
    snap = tensafe.snapshot(model)
    change(model)
    snap.update()
    assert not snap.diff()
    expected = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        model.weight.add_(1)
    snap.restore()
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())


def test_state_dict_is_what_the_objects_give_and_nobody_elses() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model.register_buffer("aside", torch.ones(1), persistent=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.randn(3, 2)).sum().backward()
    optimizer.step()
    snap = tensafe.snapshot(model, optimizer)
    found = snap.state_dict()
    fresh = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    fresh.load_state_dict(found["model"])
    assert list(found["model"]) == list(model.state_dict())
    other = torch.optim.SGD(fresh.parameters(), lr=0.7)
    other.load_state_dict(found["optimizer"])
    assert other.param_groups[0]["lr"] == 0.1
    for value in found["model"].values():
        value.zero_()
    assert not snap.diff()
    assert bool(snap.state_dict()["model"]["1.weight"].all())


def test_diff_tells_what_and_how_much() -> None:
    tree = {"a": torch.zeros(4), "b": np.zeros(2), "n": 1, "gone": 2, "nan": torch.tensor([torch.nan])}
    snap = tensafe.snapshot(tree)
    assert not snap.diff()
    tree["a"][1:3] = torch.tensor([-3.0, 2.0])
    tree["b"][0] = torch.nan
    tree["n"] = 5
    del tree["gone"]
    tree["born"] = torch.ones(1)
    found = snap.diff()
    a, b = found.tensors
    assert (a.path, a.changed, a.numel, a.max_abs) == ('tree["a"]', 2, 4, 3.0)
    assert (b.changed, b.max_abs != b.max_abs) == (1, True)
    assert [(one.path, one.before, one.after) for one in found.values] == [('tree["n"]', 1, 5)]
    assert (found.born, found.gone) == (('tree["born"]',), ('tree["gone"]',))
    assert str(found).splitlines()[0] == 'tree["a"]: 2 of 4 elements, by at most 3'


def test_nothing_is_drawn_printed_or_left(capfd: pytest.CaptureFixture[str]) -> None:
    model = nn.Linear(2, 2)
    before = torch.get_rng_state()
    snap = tensafe.snapshot(model, tensafe.rng, lazy=True)
    snap.update()
    snap.restore()
    snap.diff()
    snap.state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    assert capfd.readouterr() == ("", "")


def test_what_is_negated_or_conjugated_lazily_is_written_in_place() -> None:
    minus = torch.tensor([1 + 2j, 3 - 1j]).conj().imag
    weight = nn.Parameter(torch.tensor([1 + 2j]).conj())
    snap = tensafe.snapshot([minus, weight])
    minus.add_(1)
    weight.data.add_(1)
    snap.restore()
    assert (minus.tolist(), weight.tolist()) == ([-2.0, 1.0], [1 - 2j])
    assert minus.is_neg()
    assert weight.is_conj()


def test_a_conjugate_beside_its_base_is_no_second_value(tmp_path: Any) -> None:
    base = torch.tensor([1 + 2j, 3 - 1j])
    tree = {"base": base, "conjugate": base.conj(), "minus": base.conj().imag}
    tensafe.snapshot(tree).save(tmp_path / "snap.safetensors")
    base.zero_()
    tensafe.Snapshot.load(tmp_path / "snap.safetensors").restore(tree)
    assert base.tolist() == [1 + 2j, 3 - 1j]
    assert tree["conjugate"].tolist() == [1 - 2j, 3 + 1j]


def test_a_tensor_whose_storage_was_freed_is_refused_by_its_path() -> None:
    x = torch.ones(4)
    x.untyped_storage().resize_(0)
    tree = {"kept": torch.ones(2), "freed": x}
    with pytest.raises(tensafe.TensafeError, match=r'^tree\["freed"\] has no memory'):
        tensafe.snapshot(tree)


def test_arrays_of_dates_and_of_arrays_are_compared() -> None:
    dates = np.array(["2020-01-01", "NaT"], dtype="M8[D]")
    objects = np.array([np.ones(2), None], dtype=object)
    tree = {"dates": dates, "objects": objects}
    snap = tensafe.snapshot(tree)
    assert not snap.diff()
    objects[0] = np.ones(2)
    dates[0] = dates[1]
    assert [change.path for change in snap.diff().values] == ['tree["dates"]', 'tree["objects"]']


def test_keys_stand_in_the_order_they_had() -> None:
    tree: dict[Any, Any] = {"a": 1, "b": torch.ones(1), 3: 2}
    snap = tensafe.snapshot(tree)
    tree["a"] = tree.pop("a")
    del tree["b"]
    snap.restore()
    assert list(tree) == ["a", "b", 3]
    assert list(tree.values()) == [1, torch.ones(1), 2]


def test_a_source_of_random_numbers_without_a_state_is_passed_over() -> None:
    tree: list[Any] = [torch.zeros(1), random.SystemRandom()]
    snap = tensafe.snapshot(tree)
    tree[0].add_(1)
    snap.restore()
    assert tree[0].tolist() == [0.0]


def test_a_difference_is_told_in_printable_lines_and_texts_keep_their_quotes() -> None:
    """A key may hold what no terminal encoding knows, or what steers it."""
    key = "w\udc80\x1b[31m\n"
    held = {"name": "two words", key: torch.zeros(2), "shape": torch.zeros(2), "gone": 1}
    snap = tensafe.snapshot(held)
    held.update({"name": "three\nmore words", "shape": torch.zeros(3), "new\x00": 2})
    held[key].add_(1)
    del held["gone"]
    assert str(snap.diff()).splitlines() == [
        r'held["w\udc80\x1b[31m\n"]: 2 of 2 elements, by at most 1',
        r"""held["name"]: 'two words' -> 'three\nmore words'""",
        'held["shape"]: float32 [2] -> float32 [3]',
        r'held["new\x00"]: is new',
        'held["gone"]: is gone',
    ]
