"""Which tensors a tree of objects holds, and what they are called."""

from __future__ import annotations

import collections
import dataclasses
import enum
import types
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tensafe import memory_map
from tensafe.look import MemoryMap


def names(found: MemoryMap) -> dict[str, str]:
    """Every name with the kind of what it names."""
    return {
        name: tensor.kind for storage in found.storages for tensor in storage.tensors for name in tensor.names
    }


class Pair(NamedTuple):
    """Fields by name."""

    first: Tensor
    second: Tensor


@dataclasses.dataclass
class Batch:
    """A dataclass."""

    images: Tensor


class Slotted:
    """Slots, one of them unset."""

    __slots__ = ("held", "unset")

    def __init__(self, held: Tensor) -> None:
        self.held = held


class Split(enum.Enum):
    """Keys of a dictionary."""

    TRAIN = 1


class Listed(list[Any]):
    """A list with an attribute."""


def tensor() -> Tensor:
    return torch.ones(3)


def test_containers_are_spelled_as_python_spells_them() -> None:
    things: Any = {
        "x": [tensor(), (tensor(),)],
        3: Pair(tensor(), tensor()),
        ("a", 1): Batch(tensor()),
        Split.TRAIN: Slotted(tensor()),
        'quote"d': collections.deque([tensor()]),
        "plain": types.SimpleNamespace(t=tensor()),
        "read-only": types.MappingProxyType({"t": tensor()}),
    }
    assert set(names(memory_map(things))) == {
        'things["x"][0]',
        'things["x"][1][0]',
        "things[3].first",
        "things[3].second",
        'things[("a", 1)].images',
        "things[Split.TRAIN].held",
        "things['quote\"d'][0]",
        'things["plain"].t',
        'things["read-only"]["t"]',
    }


def test_sets_and_attributes_of_lists_are_looked_into() -> None:
    bag = {tensor()}
    row = Listed([tensor()])
    row.extra = tensor()  # type: ignore[attr-defined]
    assert set(names(memory_map(bag, row))) == {"bag{0}", "row[0]", "row.extra"}


def test_a_module_and_its_optimizer() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    model.register_buffer("scratch", tensor(), persistent=False)
    model.cache = tensor()  # type: ignore[assignment]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    parameters = [f"model.{name}" for name, _ in model.named_parameters()]
    found = names(memory_map(optimizer, model))
    assert found == {
        **dict.fromkeys(parameters, "parameter"),
        **{f"{name}.grad": "gradient" for name in parameters},
        **{f"optimizer.state[{name}].momentum_buffer": "optimizer state" for name in parameters},
        **{f"model.{name}": "buffer" for name, _ in model.named_buffers()},
        "model.cache": "tensor",
    }


def test_an_optimizer_alone_names_its_parameters() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(tensor())], lr=0.1)
    assert names(memory_map(optimizer)) == {'optimizer.param_groups[0]["params"][0]': "parameter"}


def test_one_tensor_under_two_names_is_a_tie() -> None:
    model = nn.ModuleDict({"embed": nn.Embedding(4, 3), "head": nn.Linear(3, 4, bias=False)})
    model["head"].weight = model["embed"].weight
    found = memory_map(model)
    assert [tie.names for tie in found.ties] == [("model.head.weight", "model.embed.weight")]
    assert found.stored_nbytes == 4 * 3 * 4


def test_one_module_in_several_places_has_all_their_names() -> None:
    blocks = nn.ModuleList([nn.Linear(2, 2, bias=False)] * 3)
    assert set(names(memory_map(blocks))) == {"blocks.0.weight", "blocks.1.weight", "blocks.2.weight"}


def test_what_has_no_variable_is_called_by_its_place() -> None:
    weights = tensor()
    found = memory_map(weights, [tensor()])
    assert {tensor.name for storage in found.storages for tensor in storage.tensors} == {"weights", "arg1[0]"}


def test_a_cycle_ends() -> None:
    node: dict[str, Any] = {"t": tensor()}
    node["self"] = node
    other = [node]
    node["back"] = other
    assert set(names(memory_map(node))) == {'node["t"]'}


def test_a_very_deep_list_does_not_recurse() -> None:
    deep: Any = tensor()
    for _ in range(100_000):
        deep = [deep]
    (name,) = names(memory_map(deep))
    assert name.startswith("deep[0][0]")
    assert "…" in name


def test_sparse_tensors_show_their_components() -> None:
    graph = torch.eye(3).to_sparse()
    rows = torch.eye(3).to_sparse_csr()
    assert set(names(memory_map(graph, rows))) == {
        "graph (indices)",
        "graph (values)",
        "rows (crow_indices)",
        "rows (col_indices)",
        "rows (values)",
    }


def test_arrays_of_objects_and_masked_arrays() -> None:
    objects = np.empty(2, dtype=object)
    objects[0] = tensor()
    masked = np.ma.masked_array(np.ones(3), mask=[True, False, True])
    found = names(memory_map(objects, masked))
    assert set(found) == {"objects", "objects[0]", "masked (data)", "masked (mask)"}


def test_storages_and_memoryviews_are_named() -> None:
    array = np.ones(4)
    store, look = torch.ones(5).untyped_storage(), memoryview(array)
    found = memory_map(store, look, array)
    assert {storage.nbytes: {t.name for t in storage.tensors} for storage in found.storages} == {
        20: {"store"},
        32: {"look", "array"},
    }


def test_a_released_memoryview_holds_nothing() -> None:
    gone = memoryview(bytearray(8))
    gone.release()
    assert names(memory_map([gone], torch.ones(2))) == {"arg1": "tensor"}


def test_what_somebody_put_on_a_tensor_is_found() -> None:
    weight = nn.Parameter(tensor())
    weight.main_grad = tensor()  # type: ignore[attr-defined]
    assert names(memory_map(weight)) == {"weight": "parameter", "weight.main_grad": "tensor"}


def test_no_code_of_the_objects_runs() -> None:
    hostile = Hostile(tensor())
    table = HostileDict(t=tensor())
    row = HostileList([tensor()])
    assert set(names(memory_map(hostile, table, row))) == {"hostile.held", 'table["t"]', "row[0]"}


def _forbidden(*_args: object, **_kwargs: object) -> Any:
    pytest.fail("code of a looked-at object ran")


class Hostile:
    """An object whose every method tells."""

    def __init__(self, held: Tensor) -> None:
        object.__setattr__(self, "held", held)

    __getattribute__ = __getattr__ = __eq__ = __hash__ = __repr__ = __iter__ = __len__ = __bool__ = _forbidden  # type: ignore[assignment]
    __class__ = property(_forbidden)  # type: ignore[assignment]
    trap = property(_forbidden)


class HostileDict(dict[str, Any]):
    """A dictionary likewise."""

    items = keys = values = __iter__ = __getitem__ = __repr__ = __len__ = _forbidden  # type: ignore[assignment]


class HostileList(list[Any]):
    """A list likewise."""

    __iter__ = __getitem__ = __repr__ = __len__ = _forbidden  # type: ignore[assignment]
