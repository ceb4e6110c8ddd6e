"""`deepcopy` and tensors with a graph: refused by name, cut, or kept; other refusals with their place."""

from __future__ import annotations

import copy
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import tensafe


def a_batch() -> tuple[dict[str, Any], torch.Tensor]:
    weight = torch.ones(3, requires_grad=True)
    return {"x": [1, 2], "pred": SimpleNamespace(logits=weight * 2)}, weight


def test_a_refusal_names_the_place() -> None:
    batch, _ = a_batch()
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user") as stock:
        copy.deepcopy(batch)
    with pytest.raises(tensafe.TensafeError) as ours:
        tensafe.deepcopy(batch)
    assert isinstance(ours.value, stock.type)
    assert '`batch["pred"].logits`' in str(ours.value)
    assert "\n" not in str(ours.value)


class Backbone(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2)])
        self.layers[0].seen = self.layers[0](torch.ones(1, 2))


class Asks:
    """Copies itself with the stock function."""

    def __init__(self, held: object) -> None:
        self.held = held

    def __deepcopy__(self, memo: dict[int, Any]) -> Asks:
        return Asks(copy.deepcopy(self.held, memo))


def test_the_place_inside_modules_objects_and_methods() -> None:
    model, weight = Backbone(), torch.ones(2, requires_grad=True)
    with pytest.raises(tensafe.TensafeError, match=r"`model\.layers\[0\]\.seen`"):
        tensafe.deepcopy(model)
    outer = [Asks({"a": weight + 1})]
    with pytest.raises(tensafe.TensafeError, match=r'`outer\[0\]\.held\["a"\]`'):
        tensafe.deepcopy(outer)
    with pytest.raises(tensafe.TensafeError, match="`obj`"):
        tensafe.deepcopy(weight * 3)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes yet")
def test_another_refusal_has_its_place_as_a_note() -> None:
    served = {"model": SimpleNamespace(lock=threading.Lock())}
    with pytest.raises(TypeError, match="cannot pickle") as refusal:
        tensafe.deepcopy(served)
    assert refusal.value.__notes__ == ['while copying `served["model"].lock`']


def test_cut_copies_the_values() -> None:
    batch, _ = a_batch()
    copied = tensafe.deepcopy(batch, graph="cut")
    assert copied["pred"].logits.tolist() == [2.0, 2.0, 2.0]
    assert not copied["pred"].logits.requires_grad
    copied["pred"].logits.zero_()
    assert batch["pred"].logits.tolist() == [2.0, 2.0, 2.0]


def test_keep_lets_gradients_reach_the_source() -> None:
    batch, weight = a_batch()
    copied = tensafe.deepcopy(batch, graph="keep")
    (copied["pred"].logits * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [2.0, 20.0, 200.0]


def test_keep_keeps_aliases_of_views_in_the_graph() -> None:
    weight = torch.ones(4, requires_grad=True)
    h = weight * 2
    h, v = tensafe.deepcopy((h, h[1:3]), graph="keep")
    with torch.no_grad():
        h.fill_(5.0)
    assert v.tolist() == [5.0, 5.0]
    h, v = tensafe.deepcopy([(w := weight * 2), w[1:3]], graph="keep")
    v.mul_(3.0)
    h.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [2.0, 6.0, 6.0, 2.0]


def test_leaves_are_new_leaves_whatever_the_graph() -> None:
    model = nn.Linear(2, 2)
    copied = tensafe.deepcopy(model, graph="keep")
    assert copied.weight.is_leaf
    assert copied.weight.requires_grad


def test_views_keep_their_storage_when_the_graph_is_cut() -> None:
    h = torch.ones(4, requires_grad=True) * 2
    whole, part = tensafe.deepcopy([h, h[2:]], graph="cut")
    whole.zero_()
    assert part.tolist() == [0.0, 0.0]


class AsksUs:
    """Copies itself with ours, and knows nothing of the options of the outer call."""

    def __init__(self, held: object) -> None:
        self.held = held

    def __deepcopy__(self, memo: dict[int, Any]) -> AsksUs:
        return AsksUs(tensafe.deepcopy(self.held, memo))


def test_nested_calls_take_the_options_of_the_outer_one() -> None:
    weight = torch.ones(2, requires_grad=True)
    memo: dict[int, Any] = {}
    copied = tensafe.deepcopy(AsksUs(weight * 2), memo, graph="cut")
    assert copied.held.tolist() == [2.0, 2.0]
    assert "tensafe" not in memo
    with pytest.raises(RuntimeError):
        tensafe.deepcopy(AsksUs(weight * 2), memo)


def test_another_word_is_refused() -> None:
    with pytest.raises(tensafe.TensafeError, match='it is "raise", "cut" or "keep"'):
        tensafe.deepcopy([1], graph="drop")  # type: ignore[arg-type]


def nested(depth: int, wrap: Any) -> Any:
    value: Any = torch.zeros(1)
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: [x],
        lambda x: (x,),
        lambda x: {"a": x},
        lambda x: SimpleNamespace(a=x),
        lambda x: Asks(x),
        lambda x: frozenset([x]),
    ],
    ids=["list", "tuple", "dict", "object", "method", "set"],
)
def test_no_earlier_recursion_error_than_the_standard_library(wrap: Any) -> None:
    """The deepest that stock copies within a limit, ours copies, too."""

    def copies(function: Any, depth: int) -> bool:
        try:
            function(nested(depth, wrap))
        except RecursionError:
            return False
        return True

    deepest = max(depth for depth in range(10, 400, 10) if copies(copy.deepcopy, depth))
    assert copies(tensafe.deepcopy, deepest)


def test_too_deep_is_a_recursion_error() -> None:
    with pytest.raises(RecursionError):
        tensafe.deepcopy(nested(100_000, lambda x: [x]))


class Unreadable(dict):  # type: ignore[type-arg]
    """Copies its items once, and raises when it is asked again."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (Unreadable, (), {"held": self.held})

    @property
    def held(self) -> Any:
        return torch.ones(2, requires_grad=True) * 2

    def __getattribute__(self, name: str) -> Any:
        if name in ("items", "__dict__"):
            raise ZeroDivisionError
        return super().__getattribute__(name)


def test_an_object_that_cannot_be_read_still_gives_the_refusal() -> None:
    with pytest.raises(tensafe.TensafeError, match="has a graph"):
        tensafe.deepcopy([Unreadable()])


def test_a_conjugated_parameter_that_needs_a_gradient() -> None:
    weight = nn.Parameter(torch.tensor([1 + 2j]).conj())
    weight, other = tensafe.deepcopy([weight, weight.detach().conj()])
    assert weight.requires_grad
    assert (weight.tolist(), other.tolist()) == ([1 - 2j], [1 + 2j])


class OfAClass(nn.Parameter):
    """A Parameter of another class, which `deepcopy` copies by its `__deepcopy__`."""


@pytest.mark.parametrize("kind", [nn.Parameter, OfAClass])
@pytest.mark.parametrize("device", [None, "cpu"])
def test_gradients_are_copied_whatever_is_in_force(kind: type[nn.Parameter], device: str | None) -> None:
    source = kind(torch.ones(2))
    source.grad = torch.full((2,), 3.0)
    with torch.device(device) if device else torch.no_grad():  # a device in force is a function mode
        copied, gradient = tensafe.deepcopy([source, source.grad], grads=True)
    assert type(copied) is kind
    assert copied.grad is gradient
    assert gradient.tolist() == [3.0, 3.0]
    assert gradient is not source.grad


def test_a_device_in_force_does_not_hide_the_word_for_graphs() -> None:
    batch, weight = a_batch()
    with torch.device("cpu"):
        cut = tensafe.deepcopy(batch, graph="cut")
        kept = tensafe.deepcopy(batch, graph="keep")
    assert not cut["pred"].logits.requires_grad
    assert cut["pred"].logits.tolist() == [2.0, 2.0, 2.0]
    kept["pred"].logits.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [2.0, 2.0, 2.0]
