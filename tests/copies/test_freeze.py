"""`tensafe.freeze`: the storage refuses writes through every alias, reads and gradients go on."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy
import pytest
import torch

import tensafe
from copies.test_readonly import WRITES
from tensafe.copies.freeze import FreezeError

ALLOWED = {"set_", "data =", "resize_"}
"""They give the tensor another storage, or let go of elements; no byte of the frozen one changes."""


@pytest.mark.filterwarnings("ignore:.*torch.jit.*")
@pytest.mark.parametrize("name", [name for name in WRITES if name not in ALLOWED])
def test_a_write_raises_and_changes_nothing(name: str) -> None:
    x = tensafe.freeze(torch.arange(16.0).reshape(4, 4))
    with pytest.raises((RuntimeError, BufferError)):
        WRITES[name](x)
    assert torch.equal(x, torch.arange(16.0).reshape(4, 4))


def test_aliases_taken_before_are_frozen_and_storage_writes_too() -> None:
    x = torch.arange(4.0)
    row, alias = x[1:], x.data
    assert tensafe.freeze(x) is x
    for write in (row.zero_, alias.zero_, lambda: x.untyped_storage().fill_(0)):
        with pytest.raises(RuntimeError):
            write()
    assert x.tolist() == [0, 1, 2, 3]


def test_moving_to_shared_memory_does_not_thaw() -> None:
    x = tensafe.freeze(torch.arange(4.0)).share_memory_()
    with pytest.raises(RuntimeError):
        x[1:].zero_()
    assert x.tolist() == [0, 1, 2, 3]


def test_a_clone_thaws() -> None:
    x = tensafe.freeze(torch.arange(4.0))
    assert x.clone().add_(1).tolist() == [1, 2, 3, 4]


def test_a_frozen_model_runs_forward_and_backward_and_cannot_be_stepped() -> None:
    model = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 3), torch.nn.Flatten(), torch.nn.Linear(9, 2))
    x = torch.randn(4, 2, 5, requires_grad=True)
    plain = model(x)
    plain.sum().backward()
    expected, model_gradient = x.grad.clone(), model[2].weight.grad.clone()  # type: ignore[union-attr]
    model.zero_grad()
    x.grad = None
    tensafe.freeze(model)
    ours = model(x)
    ours.sum().backward()
    assert torch.equal(ours, plain)
    assert torch.equal(x.grad, expected)  # type: ignore[arg-type]
    assert torch.equal(model[2].weight.grad, model_gradient)  # type: ignore[arg-type]
    before = [p.detach().clone() for p in model.parameters()]
    for fused in (False, True):
        with pytest.raises(RuntimeError):
            torch.optim.SGD(model.parameters(), lr=1.0, fused=fused).step()
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))


def test_buffers_and_state_are_frozen() -> None:
    norm = torch.nn.BatchNorm1d(2)
    optimizer = torch.optim.Adam(norm.parameters())
    norm(torch.randn(3, 2)).sum().backward()
    optimizer.step()
    tensafe.freeze({"model": norm, "optimizer": optimizer})
    with pytest.raises(RuntimeError):
        norm.running_mean.zero_()  # type: ignore[union-attr]
    with pytest.raises(RuntimeError):
        optimizer.state[norm.weight]["exp_avg"].zero_()


READS = {
    "numpy": lambda x: x.numpy(),
    "data_ptr": lambda x: x.data_ptr(),
    "DLPack": torch.from_dlpack,
    "pickle": pickle.dumps,
    "torch.save": lambda x: torch.save(x, io.BytesIO()),
}


@pytest.mark.parametrize("name", READS)
def test_what_asks_for_a_pointer_is_refused_as_documented(name: str) -> None:
    with pytest.raises(RuntimeError, match="Cannot access data pointer"):
        READS[name](tensafe.freeze(torch.arange(4.0)))
    READS[name](torch.arange(4.0))


def test_layers_that_only_read_go_on() -> None:
    frozen = [torch.nn.GRU(4, 2), torch.nn.Embedding(3, 4), torch.nn.BatchNorm1d(4).eval()]
    for layer in tensafe.freeze(frozen):
        layer(torch.zeros(2, dtype=torch.long) if layer is frozen[1] else torch.zeros(2, 4))
    with pytest.raises(RuntimeError):
        tensafe.freeze(torch.nn.LSTM(4, 2))(torch.zeros(2, 4))


def test_sparse_components_are_frozen() -> None:
    sparse = torch.eye(3).to_sparse()
    tensafe.freeze(sparse)
    with pytest.raises(RuntimeError):
        sparse._values().zero_()


def test_arrays_are_frozen_down_to_their_owner() -> None:
    owner = numpy.arange(6)
    row = owner[2:4]
    tensafe.freeze({"row": row})
    for array in (owner, row, owner[3:], row[1:]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9


def test_the_tensor_below_an_array_is_frozen() -> None:
    x = torch.zeros(3)
    array = x.numpy()
    tensafe.freeze(array)
    assert not array.flags.writeable
    with pytest.raises(RuntimeError):
        x.add_(1)


def test_all_or_nothing() -> None:
    opaque: Any = torch.ones(2, 2).to_mkldnn() if torch.backends.mkldnn.is_available() else None
    if opaque is None:
        pytest.skip("no MKL-DNN in this torch")
    x, array = torch.zeros(1), numpy.zeros(1)
    with pytest.raises(FreezeError, match=r'x\["b"\]\[0\] cannot be frozen'):
        tensafe.freeze({"x": x, "a": array, "b": [opaque]})
    x.add_(1)
    array += 1


def test_an_old_torch_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C, "_set_throw_on_mutable_data_ptr")
    with pytest.raises(FreezeError, match=r"tensafe\.readonly"):
        tensafe.freeze(torch.zeros(1))


class Trainer:
    def __init__(self) -> None:
        self.epoch = 1
        self.model = torch.nn.Linear(2, 2)


def test_an_object_that_only_holds_tensors_is_refused() -> None:
    """Nothing of it would be frozen, and its owner would think that all is."""
    trainer = Trainer()
    with pytest.raises(
        FreezeError, match=r"^x is a Trainer that holds a tensor in `model`: freeze x\.model instead$"
    ):
        tensafe.freeze(trainer)
    trainer.model.weight.detach().zero_()
    assert tensafe.freeze([]) == []
