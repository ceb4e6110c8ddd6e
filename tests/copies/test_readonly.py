"""`tensafe.readonly`: no write gets through, every read does, and autograd does not notice."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import pytest
import torch
import torch.nn.functional as F

import tensafe
from tensafe.copies.readonly_tensor import ReadOnlyError

Write = Callable[[torch.Tensor], Any]


def _fused(x: torch.Tensor) -> None:
    torch._fused_sgd_(
        [x],
        [torch.ones_like(x)],
        [],
        weight_decay=0.0,
        momentum=0.0,
        lr=1.0,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=False,
    )


def _assign(x: torch.Tensor) -> None:
    x[0] = 1


def _assign_by_mask(x: torch.Tensor) -> None:
    x[x > -1] = 1


def _assign_to_array(x: torch.Tensor) -> None:
    x.numpy()[0] = 1


def _assign_to_array_of_a_view(x: torch.Tensor) -> None:
    numpy.asarray(x[1:].t())[0] = 1


WRITES: dict[str, Write] = {
    "add_": lambda x: x.add_(1),
    "+=": lambda x: x.__iadd__(1),
    "x[0] =": _assign,
    "x[mask] =": _assign_by_mask,
    "out=": lambda x: torch.add(torch.ones(4, 4), 1, out=x),
    "copy_": lambda x: x.copy_(torch.ones(4, 4)),
    "foreach": lambda x: torch._foreach_add_([torch.zeros(4, 4), x], 1),
    "fused": _fused,
    "relu(inplace)": lambda x: F.relu(x, inplace=True),
    "init": lambda x: torch.nn.init.zeros_(x),
    "scatter_": lambda x: x.scatter_(0, torch.zeros(1, 4, dtype=torch.long), 5.0),
    "embedding(max_norm)": lambda x: F.embedding(torch.tensor([0]), x, max_norm=0.01),
    "running statistics": lambda x: F.batch_norm(torch.randn(3, 4), x[0], x[1], training=True),
    "resize_": lambda x: x.resize_(2),
    "set_": lambda x: x.set_(torch.zeros(1)),
    "data": lambda x: x.data.zero_(),
    "data =": lambda x: setattr(x, "data", torch.zeros(4, 4)),
    "detach": lambda x: x.detach().zero_(),
    "row": lambda x: x[2].zero_(),
    "view of a view": lambda x: x.view(-1)[3:9].unsqueeze(0).t().fill_(1),
    "no-op contiguous": lambda x: x.contiguous().zero_(),
    "no-op to": lambda x: x.to(torch.float32).zero_(),
    "chunk": lambda x: x.chunk(2)[1].zero_(),
    "iteration": lambda x: [row.zero_() for row in x],
    "expand": lambda x: x[:1].expand(4, 4)[0].zero_(),
    "as_strided": lambda x: x.as_strided((2,), (1,)).zero_(),
    "as_subclass": lambda x: x.as_subclass(torch.Tensor).zero_(),
    "bits": lambda x: x.view(torch.int32).zero_(),
    "script": lambda x: _script(x),
    "array": _assign_to_array,
    "array of a view": _assign_to_array_of_a_view,
    "array made writeable": lambda x: setattr(x.numpy().flags, "writeable", True),
    "DLPack": lambda x: torch.from_dlpack(x).zero_(),
}


REFUSALS = r"read-?only|WRITEABLE|already associated to a python object"
"""In our words, in NumPy's, and in those of older torch for `as_subclass`."""


def _script(x: torch.Tensor) -> torch.Tensor:
    scripted: Any = torch.jit.script(_add_one)
    return scripted(x)


def _add_one(x: torch.Tensor) -> torch.Tensor:
    return x.add_(1)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*")
@pytest.mark.parametrize("name", WRITES)
def test_a_write_raises_and_changes_nothing(name: str) -> None:
    original = torch.arange(16.0).reshape(4, 4)
    with pytest.raises((ReadOnlyError, RuntimeError, ValueError, BufferError), match=REFUSALS):
        WRITES[name](tensafe.readonly(original))
    assert torch.equal(original, torch.arange(16.0).reshape(4, 4))


def test_the_same_writes_work_on_the_original() -> None:
    for name in ("add_", "foreach", "fused", "row", "chunk", "expand"):
        original = torch.arange(16.0).reshape(4, 4)
        seen = tensafe.readonly(original)
        WRITES[name](original)
        if name not in ("foreach", "fused"):
            assert not torch.equal(original, torch.arange(16.0).reshape(4, 4)), name
        assert torch.equal(seen, original)


def test_a_message_is_one_line_that_names_the_operation() -> None:
    with pytest.raises(ReadOnlyError) as raised:
        tensafe.readonly(torch.zeros(2)).add_(1)
    assert str(raised.value) == (
        "`add_` would write into a tensor made by tensafe.readonly: "
        "write into a copy (x.clone()), or into the original"
    )


def test_reads_copy_nothing_and_give_ordinary_tensors() -> None:
    original = torch.arange(6.0)
    seen = tensafe.readonly(original)
    assert (seen.tolist(), seen[1].item(), f"{seen.sum():.1f}") == ([0, 1, 2, 3, 4, 5], 1, "15.0")
    assert tensafe.overlap(seen[1:], original) is not None
    assert seen.data_ptr() == original.data_ptr()
    for result in (seen + 1, seen.clone(), seen * seen, torch.cat([seen, seen]), seen[seen > 2], -seen):
        assert type(result) is torch.Tensor
        result.add_(1)
    other = torch.zeros(6)
    assert other.add_(seen) is other
    assert other.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("layer", [torch.nn.Linear(4, 3), torch.nn.LSTM(4, 3), torch.nn.LayerNorm(4)])
def test_layers_read_it(layer: Any) -> None:
    x = torch.randn(5, 4)
    ours, plain = layer(tensafe.readonly(x)), layer(x)
    assert torch.equal(ours[0], plain[0])


def test_gradients_pass() -> None:
    x = torch.randn(5, requires_grad=True)
    (tensafe.readonly(x)[1:] ** 2).sum().backward()
    hidden = x * 2
    (tensafe.readonly(hidden) * hidden).sum().backward()
    assert torch.allclose(x.grad, 8 * x + torch.cat([torch.zeros(1), 2 * x[1:]]))  # type: ignore[arg-type]


def test_a_write_into_the_original_is_seen_by_backward() -> None:
    hidden = torch.randn(5, requires_grad=True) * 2
    loss = (tensafe.readonly(hidden) ** 2).sum()
    hidden.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_transforms_read_it() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.vmap(lambda row: row * 2)(tensafe.readonly(x)).tolist() == (x * 2).tolist()
    assert torch.func.grad(lambda y: (y * y).sum())(tensafe.readonly(x)).tolist() == (2 * x).tolist()


def test_copies_are_writable_and_pickles_are_not() -> None:
    x = torch.arange(3.0)
    seen = tensafe.readonly(x)
    copied = copy.deepcopy(seen)
    copied.add_(1)
    assert x.tolist() == [0, 1, 2]
    loaded = pickle.loads(pickle.dumps(seen))
    assert loaded.tolist() == [0, 1, 2]
    with pytest.raises(ReadOnlyError):
        loaded.add_(1)


def test_numpy_of_a_tensor_that_requires_grad_is_refused_as_by_torch() -> None:
    with pytest.raises(RuntimeError, match="requires grad"):
        tensafe.readonly(torch.ones(2, requires_grad=True)).numpy()


def test_an_array_gives_a_view_that_is_not_writeable() -> None:
    array = numpy.arange(4)
    seen = tensafe.readonly(array)
    with pytest.raises(ValueError, match="read-only"):
        seen[0] = 1
    array[0] = 7
    assert seen[0] == 7


@dataclasses.dataclass
class Batch:
    image: torch.Tensor
    name: str


class Pair(NamedTuple):
    first: Any
    second: Any


def test_trees_keep_their_kinds_and_their_sharing() -> None:
    x, array = torch.zeros(2), numpy.zeros(2)
    tree: dict[str, Any] = {"x": x, "list": [x, array], "batch": Batch(x, "a"), "pair": Pair(x, 3)}
    tree["self"] = tree
    seen = tensafe.readonly(tree)
    assert seen["self"] is seen
    assert seen["list"][0] is seen["x"] is seen["batch"].image is seen["pair"].first
    assert (type(seen["pair"]), seen["batch"].name, seen["pair"].second) == (Pair, "a", 3)
    assert not seen["list"][1].flags.writeable
    with pytest.raises(ReadOnlyError):
        seen["batch"].image[0] = 1
    tree["x"][0] = 1.0
    assert seen["pair"].first[0] == 1
    assert type(tree["batch"].image) is torch.Tensor


class Holder:
    def __init__(self) -> None:
        self.weight = torch.zeros(1)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.nn.Linear(1, 1), 'x["a"] is a Linear: use tensafe.freeze'),
        (Holder(), 'x["a"] is a Holder that holds a tensor in `weight`'),
        (torch.eye(2).to_sparse(), 'x["a"] is a sparse tensor'),
    ],
)
def test_what_cannot_be_read_only_is_named(value: Any, words: str) -> None:
    with pytest.raises(ReadOnlyError) as raised:
        tensafe.readonly({"a": value})
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
