"""Plain trees, which are copied without a memo: as `copy.deepcopy` copies them, whatever else is in them."""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import tensafe
from copies.twins import assert_apart, assert_twins, sharing
from tensafe.copies.walking import compiled, trees


@pytest.fixture(params=["compiled", "python"], scope="module", autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test once with the compiled walk, once with the one in Python."""
    if request.param == "compiled" and compiled.plain is None:
        pytest.skip("the walk was not compiled here")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setattr(compiled, "plain", None)
        yield


ATOMS = [1, 2.5, None, True, "text", b"raw", 1j, ..., torch.float32, torch.device("cpu"), torch.Size([2])]
KEYS = ["a", "b", 0, 1, None, 2.5, "weight"]


def tensors() -> st.SearchStrategy[Any]:
    makers: list[Callable[[], Any]] = [
        lambda: torch.rand(3),
        lambda: torch.rand(()),
        lambda: torch.zeros(0),
        lambda: torch.tensor([[0, 1], [2, 3]]),
        lambda: nn.Parameter(torch.rand(2)),
        lambda: nn.Parameter(torch.rand(2), requires_grad=False),
    ]
    return st.sampled_from(makers).map(lambda make: make())


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    items = st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        items,
        items.map(OrderedDict),
        items.map(with_attributes),
    )


def with_attributes(items: dict[Any, Any]) -> OrderedDict[Any, Any]:
    found = OrderedDict(items)
    found._metadata = OrderedDict({"": {"version": 1}, "layer": {"shape": (1, [2])}})  # type: ignore[attr-defined]
    return found


def with_enough(inner: Any) -> dict[str, Any]:
    return {"state": inner, "more": [torch.rand(2) for _ in range(6)]}


PLAIN = st.recursive(st.sampled_from(ATOMS) | tensors(), containers, max_leaves=25).map(with_enough)


@given(PLAIN)
@settings(max_examples=300)
def test_as_the_standard_library_copies(tree: Any) -> None:
    before = copy.deepcopy(tree)
    copied = trees.of_tree(tree)
    assert copied is not None
    assert_twins(before, copied)
    assert_twins(before, tree)
    assert_apart(tree, copied)
    assert sharing(copied) == sharing(tree)


FLAT = st.sampled_from(ATOMS) | tensors()


@given(st.one_of(st.lists(FLAT, max_size=12), st.dictionaries(st.integers(), FLAT, max_size=12)))
@settings(max_examples=200)
def test_tensors_and_atoms_side_by_side(tree: Any) -> None:
    assert_twins(copy.deepcopy(tree), tensafe.deepcopy(tree))
    assert_twins(copy.deepcopy(tuple(tree)), tensafe.deepcopy(tuple(tree)))


def all_parts(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [tree, *(part for value in tree.values() for part in all_parts(value))]
    if isinstance(tree, (list, tuple)):
        return [tree, *(part for value in tree for part in all_parts(value))]
    return [tree]


@given(PLAIN, st.data())
@settings(max_examples=200)
def test_what_is_met_twice_stays_one(tree: Any, data: st.DataObject) -> None:
    """A part of the tree once more, at its end or in its attributes; or a view of it."""
    part = data.draw(st.sampled_from(all_parts(tree)))
    place = data.draw(st.sampled_from(["item", "attribute", "view", "cycle"]))
    source: Any = OrderedDict(tree)
    if place == "attribute":
        source.note = [part]
    elif place == "view" and isinstance(part, torch.Tensor):
        source["again"] = part.detach()[...]
    elif place == "cycle":
        source["again"] = [source, part]
    else:
        source["again"] = part
    ours = tensafe.deepcopy(source)
    assert_apart(source, ours)
    assert sharing(ours) == sharing(source)
    tied = place == "view" and isinstance(part, nn.Parameter)  # which `copy.deepcopy` unties
    if not tied:
        assert_twins(copy.deepcopy(source), ours)


class Hidden(dict):  # type: ignore[type-arg]
    """A dictionary of another class."""


@pytest.mark.parametrize(
    "odd",
    [
        {1, 2},
        Hidden(a=1),
        defaultdict(list, a=[1]),
        torch.nn.Linear(1, 1),
        {(1, 2): 3},
        {frozenset([1]): [2]},
    ],
    ids=lambda odd: type(odd).__name__,
)
def test_other_things_in_it_are_copied_too(odd: Any) -> None:
    source = with_enough([odd])
    assert_twins(copy.deepcopy(source), tensafe.deepcopy(source))


def test_two_states_with_one_metadata_share_it_in_the_copy() -> None:
    first, second = (OrderedDict((str(i), torch.rand(2)) for i in range(6)) for _ in range(2))
    first._metadata = second._metadata = OrderedDict({"": {"version": 1}})  # type: ignore[attr-defined]
    source = {"model": first, "average": second}
    assert_twins(copy.deepcopy(source), tensafe.deepcopy(source))


def test_attributes_in_a_dictionary_of_another_class() -> None:
    shared = torch.rand(2)
    source = OrderedDict((str(i), torch.rand(1)) for i in range(7))
    source["shared"] = shared
    source.__dict__ = Hidden(note=shared)
    copied = tensafe.deepcopy([source])[0]
    assert copied.note is copied["shared"]
    assert_twins(copy.deepcopy([source]), [copied])


def test_a_class_that_refuses_its_hash() -> None:
    class Refusing(type):
        def __hash__(cls) -> int:
            raise ValueError("no hash today")

    class Odd(metaclass=Refusing):
        pass

    for tree in ([(Odd(), 1)], {"a": [Odd()], **dict.fromkeys(range(8), 1)}):
        for deepcopy in (copy.deepcopy, tensafe.deepcopy):
            with pytest.raises(ValueError, match="no hash today"):
                deepcopy(tree)


def test_a_mode_sees_no_more_than_without_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    class Seen(torch.overrides.TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[Any] = []

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.calls.append(func)
            return func(*args, **(kwargs or {}))

    tree = {"a": [torch.rand(2) for _ in range(8)]}
    with Seen() as ours:
        tensafe.deepcopy(tree)
    monkeypatch.setattr(trees, "_in_python", lambda root: None)
    monkeypatch.setattr(trees, "_in_c", lambda root, plain: None)
    with Seen() as without:
        tensafe.deepcopy(tree)
    assert ours.calls == without.calls


def optimizer_state() -> dict[str, Any]:
    model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(5)])
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "betas": (0.9, 0.99)}


def test_what_another_thread_does_to_it_meanwhile_is_not_in_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tensors are copied without the interpreter's lock: no value may come under another's key."""
    source = optimizer_state()
    before = copy.deepcopy(source)
    copied_all = trees.copied_all

    def slow(values: list[Any]) -> list[Any]:
        del source["model"]["0.weight"]
        source["model"].move_to_end("1.weight")
        source["model"]["0.bias"] = torch.zeros(1)
        del source["optimizer"]["state"][1]["step"]
        source["optimizer"]["state"][0]["exp_avg"] = None
        source["optimizer"]["state"].clear()
        source["optimizer"]["param_groups"][0]["params"].clear()
        return copied_all(values)

    monkeypatch.setattr(trees, "copied_all", slow)
    assert_twins(before, tensafe.deepcopy(source))
