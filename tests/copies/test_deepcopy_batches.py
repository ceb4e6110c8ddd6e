"""Many tensors at once: what `deepcopy` copies beforehand is what the walk alone would make of it."""

from __future__ import annotations

import copy
import random
from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch import nn

import tensafe
from copies.test_deepcopy_tensors import BEYOND, KINDS, assert_equal
from copies.twins import assert_apart, assert_twins, sharing
from tensafe.copies.walking import batches


def plain(count: int) -> list[torch.Tensor]:
    return [torch.randn(index % 5) for index in range(count)]


def one_with(**held: Any) -> torch.Tensor:
    x = torch.ones(2, requires_grad=bool(held.pop("requires_grad", False)))
    for name, value in held.items():
        setattr(x, name, value)
    return x


BASE = torch.arange(12.0)
STRANGE = {
    "a leaf's gradient": lambda: [one_with(requires_grad=True, grad=torch.ones(2))],
    "a gradient alone": lambda: [one_with(grad=torch.ones(2))],
    "attributes": lambda: [one_with(note=["kept"])],
    "a slice": lambda: [BASE[3:5]],
    "views of one storage": lambda: [BASE, BASE[2:], BASE.view(3, 4)],
    "as large as its storage and overlapping": lambda: [torch.arange(4.0).as_strided((2, 2), (1, 1))],
    "transposed": lambda: [torch.rand(2, 3).t()],
    "the same twice": lambda: [BASE, BASE],
    "Parameters": lambda: [
        nn.Parameter(torch.rand(2)),
        nn.Parameter(torch.ones(2, dtype=torch.int64), False),
    ],
    "large": lambda: [torch.zeros(9 << 20)],
    "a tied Parameter": lambda: [nn.Parameter(BASE), BASE],
}


def test_what_a_memo_knows_is_taken_from_it() -> None:
    """A tensor with a copy already, and one whose storage was copied by an earlier call with this memo."""
    source = plain(9)
    other = torch.ones(3)
    memo: dict[Any, Any] = {id(source[4]): other}
    copied = tensafe.deepcopy(source, memo)
    assert copied[4] is other
    view = source[3].view(3, 1)
    again = tensafe.deepcopy([*plain(9), view], memo)
    assert again[-1].untyped_storage().data_ptr() == copied[3].untyped_storage().data_ptr()


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("first", [True, False])
def test_strange_ones_among_plain_ones(strange: str, first: bool) -> None:
    odd = STRANGE[strange]()
    source = {"a": odd if first else plain(9), "b": [*plain(9)], "c": odd}
    stock, ours = copy.deepcopy(source), tensafe.deepcopy(source)
    if strange != "a tied Parameter":  # which `copy.deepcopy` unties
        assert_twins(stock, ours)
    assert_apart(source, ours)
    assert sharing(ours) == sharing(source)


@pytest.mark.parametrize("kind", [dict, OrderedDict])
@pytest.mark.parametrize("strange", ["nothing", *STRANGE])
def test_a_dictionary_of_tensors_alone(kind: type, strange: str) -> None:
    odd = STRANGE[strange]() if strange in STRANGE else []
    source = kind((str(number), x) for number, x in enumerate([*plain(9), *odd]))
    if kind is OrderedDict:
        source._metadata = OrderedDict({"": {"version": 1}, "layer": {"version": 2}})
    stock, ours = copy.deepcopy(source), tensafe.deepcopy(source)
    if strange != "a tied Parameter":  # which `copy.deepcopy` unties
        assert_twins(stock, ours)
    assert_apart(source, ours)
    assert sharing(ours) == sharing(source)


class Key:
    """Of which a copy is another."""


@pytest.mark.parametrize("what", ["a tensor", "itself", "an attribute", "a key", "one list twice"])
def test_a_dictionary_of_tensors_that_holds_more(what: str) -> None:
    source: Any = OrderedDict((str(number), x) for number, x in enumerate(plain(9)))
    kept = [1]
    source.note = {"a tensor": source["3"], "itself": source, "one list twice": [kept, kept]}.get(what, 1)
    if what == "an attribute":
        source.note = OrderedDict(a=1)
        source.note.inner = source["3"]
    if what == "a key":
        source[Key()] = source.pop("3")
    copied = tensafe.deepcopy(source)
    assert [type(key) for key in copied] == [type(key) for key in copy.deepcopy(source)]
    if what == "a key":
        assert not source.keys() & copied.keys() - {str(number) for number in range(9)}
    else:
        assert_twins(copy.deepcopy(source), copied)


@pytest.mark.parametrize("kind", [*KINDS, *BEYOND])
def test_every_kind_among_plain_ones(kind: str) -> None:
    source = [*plain(8), *[{**KINDS, **BEYOND}[kind]() for _ in range(8)]]
    random.Random(1).shuffle(source)
    for x, y in zip(source, tensafe.deepcopy(source), strict=True):
        assert_equal(copy.deepcopy(x) if kind in KINDS else x, y)


def test_a_state_dict_keeps_its_metadata_and_an_optimizer_its_keys() -> None:
    model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(5)])
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    for source in (model.state_dict(), optimizer.state_dict(), [model, optimizer], [optimizer, model]):
        assert_twins(copy.deepcopy(source), tensafe.deepcopy(source))


def test_attributes_of_the_books_of_a_module_are_kept() -> None:
    model = nn.Linear(2, 2)
    model.order = OrderedDict()
    model.order.note = "kept"  # type: ignore[attr-defined]
    assert tensafe.deepcopy(model).order.note == "kept"


class Left(nn.Module):
    """Leaves a buffer out of its copies."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(4)])
        self.register_buffer("cache", torch.ones(2))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_buffers": {}}


def test_a_module_with_a_protocol_of_its_own() -> None:
    source = Left()
    copied = tensafe.deepcopy(source)
    assert_twins(copy.deepcopy(source), copied)
    assert not hasattr(copied, "cache")


def test_a_hook_s_handle_still_removes_it() -> None:
    model = nn.Linear(2, 2)
    model.handle = model.register_forward_hook(lambda *_: None)
    copied = tensafe.deepcopy(model)
    copied.handle.remove()
    assert not copied._forward_hooks
    assert model._forward_hooks


def test_there_are_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above would all pass if nothing was copied beforehand."""
    sizes: list[int] = []
    inner = batches.copied_all

    def counted(values: list[Any]) -> list[Any]:
        sizes.append(len(values))
        return inner(values)

    monkeypatch.setattr(batches, "copied_all", counted)
    tensafe.deepcopy({"a": plain(9), "b": OrderedDict(x=nn.Linear(2, 2))})
    assert sizes == [11]
