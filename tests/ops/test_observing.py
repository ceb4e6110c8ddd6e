"""What the observer says of calls whose effect is known by their making."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tensafe.ops.from_torch.observing import Seen, observe
from tensafe.ops.row import IN_BETWEEN, Graph


def seen(call: Callable[..., Any], **arguments: Any) -> Seen:
    return observe(call, list(arguments.items()), *arguments.values())


def leaf() -> torch.Tensor:
    return torch.ones(2, 3).requires_grad_()


def write_behind(x: torch.Tensor) -> None:
    x.detach().numpy()[0] = 5.0


def write_beside(x: torch.Tensor) -> None:
    """Into the same storage, outside of what the tensor itself covers."""
    torch.empty(0).set_(x.untyped_storage())[-1] = 5.0  # type: ignore[call-overload]


def test_a_view_shares_and_a_copy_does_not() -> None:
    assert seen(lambda x: x[0], x=leaf()).shares == {"x"}
    assert not seen(lambda x: x[0], x=leaf()).own
    assert not seen(lambda x: x.clone(), x=leaf()).shares
    assert seen(lambda x: x.clone(), x=leaf()).own
    both = seen(lambda x: (x[0], x + 1), x=leaf())
    assert both.shares == {"x"}
    assert both.own


def test_the_object_itself_is_told_from_a_view() -> None:
    assert seen(lambda x: x, x=leaf()).itself == {"x"}
    assert not seen(lambda x: x[:], x=leaf()).itself


def test_a_counted_write_is_seen_also_when_it_changes_nothing() -> None:
    assert seen(lambda x: x.add_(0), x=torch.ones(3)).bumped == {"x"}
    assert not seen(lambda x: x.add_(0), x=torch.ones(3)).changed
    assert seen(lambda x: x.add_(1), x=torch.ones(3)).changed == {"x"}


@pytest.mark.parametrize("write", [write_behind, write_beside])
def test_a_write_that_is_not_counted_is_seen(write: Callable[[torch.Tensor], None]) -> None:
    told = seen(write, x=torch.ones(4)[:2])
    assert not told.bumped
    assert told.changed == {"x"}


def test_a_tensor_that_moves_to_other_memory_has_written_nothing() -> None:
    told = seen(lambda x, y: x.set_(y), x=torch.ones(3), y=torch.zeros(3))
    assert not told.changed


def test_what_is_saved_is_named() -> None:
    assert seen(lambda x: x.exp(), x=leaf()).saves == {"result"}
    assert seen(lambda x, y: x * y, x=leaf(), y=leaf()).saves == {"x", "y"}
    assert seen(lambda x: (x + 1).exp().log(), x=leaf()).saves == {IN_BETWEEN}
    assert seen(lambda x: (x + 1, x.exp()), x=leaf()).saves == {"result1"}
    assert not seen(lambda x: x + 1, x=leaf()).saves


def refusing(x: torch.Tensor) -> torch.Tensor:
    return torch.floor_divide(x, 2)


@pytest.mark.parametrize(
    ("call", "graph"),
    [
        (lambda x: x + 1, Graph.KEPT),
        (lambda x: x.detach(), Graph.CUT),
        (lambda x: x.argmax(), Graph.CUT),
        (refusing, Graph.REFUSED),
        (lambda x: None, Graph.CUT),
    ],
)
def test_what_becomes_of_the_graph(call: Callable[..., Any], graph: Graph) -> None:
    assert seen(call, x=leaf()).graph is graph
    assert seen(call, x=torch.ones(2, 3)).graph is Graph.NONE


def test_two_names_of_one_memory_are_told() -> None:
    x = leaf()
    told = seen(lambda x, y: x * y, x=x, y=x)
    assert told.ambiguous == {"x": frozenset({"x", "y"})}


def test_sparse_tensors_are_looked_at_by_their_parts() -> None:
    x = torch.eye(2).to_sparse()
    assert seen(lambda x: x._values(), x=x).shares == {"x"}
    assert not seen(lambda x: x.to_dense(), x=x).shares
