"""What arguments and modes change: what is kept, written and cut, as running shows and the rows tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tensafe.ops.from_torch.observing import Seen, observe
from tensafe.ops.names import rows_named
from tensafe.ops.row import Facts, Graph, Row
from tensafe.ops.stored import stored
from tensafe.ops.telling import facts_of


def leaf(*shape: int) -> torch.Tensor:
    return (torch.rand(*shape) + 0.1).requires_grad_()


def seen(call: Callable[..., Any], **arguments: Any) -> Seen:
    return observe(call, list(arguments.items()), *arguments.values())


def row(name: str) -> Row:
    return stored()[rows_named(name, stored())[0]]


MASK = torch.tensor([True, False, True])
INDEX = torch.tensor([0, 2])


def write(x: torch.Tensor, key: Any, v: Any) -> torch.Tensor:
    x[key] = v
    return x


def add(x: torch.Tensor, key: Any, v: Any) -> torch.Tensor:
    x[key] += v
    return x


@pytest.mark.parametrize(
    ("form", "call", "key", "kept"),
    [
        ("x[mask] = v", write, MASK, "mask"),
        ("x[index] = v", write, INDEX, "index"),
        ("x[mask] += v", add, MASK, "mask"),
        ("x[key] = v", write, INDEX, "key"),
        ("x[key] += v", add, MASK, "key"),
        ("x[0] = v", write, 0, None),
        ("x[0] += v", add, 0, None),
        ("x[mask]", lambda x, key, v: x[key], MASK, "mask"),
        ("x[index]", lambda x, key, v: x[key], INDEX, "index"),
        ("x[torch.tensor(1)]", lambda x, key, v: x[key], torch.tensor(1), None),
    ],
)
def test_indexing_keeps_its_key(form: str, call: Callable[..., Any], key: Any, kept: str | None) -> None:
    told = seen(call, x=leaf(3, 4) * 1, key=key, v=1.0)
    assert told.saves == ({"key"} if kept else set())
    assert row(form).saves == ((kept,) if kept else ())


@pytest.mark.parametrize("key", [MASK, INDEX])
def test_a_key_that_is_written_before_backward_is_an_error(key: torch.Tensor) -> None:
    key = key.clone()
    y = write(leaf(3, 4) * 1, key, torch.zeros(2, 4))
    key.logical_not_() if key.dtype is torch.bool else key.add_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize(
    ("mode", "keeps"), [("constant", 0), ("circular", 0), ("reflect", 1), ("replicate", 1)]
)
def test_padding_keeps_its_input_in_the_modes_named(mode: str, keeps: int) -> None:
    assert len(seen(lambda x: F.pad(x, (1, 1), mode=mode), x=leaf(1, 3, 4)).saves) == keeps
    (facts,) = row("F.pad").groups
    assert (mode in facts.saves_when.partition(";")[0]) == bool(keeps)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_interpolating_keeps_its_input_in_the_mode_named(mode: str) -> None:
    keeps = bool(seen(lambda x: F.interpolate(x, scale_factor=2, mode=mode), x=leaf(1, 1, 4, 4)).saves)
    (facts,) = row("F.interpolate").groups
    assert (f"mode {mode};" in facts.saves_when) == keeps


def test_lerp_keeps_nothing_for_a_number() -> None:
    assert not seen(torch.lerp, input=leaf(3), end=leaf(3), weight=0.5).saves
    assert seen(torch.lerp, input=leaf(3), end=leaf(3), weight=leaf(3)).saves
    keeps = {facts.overloads: bool(facts.saves) for facts in row("lerp").groups}
    assert keeps == {("Scalar",): False, ("Tensor",): True}


@pytest.mark.parametrize("function", [F.embedding, F.embedding_bag])
def test_an_embedding_writes_its_weight_where_told_to(function: Callable[..., Any]) -> None:
    plain = seen(lambda i, w: function(i, w), i=INDEX[None], w=leaf(3, 2))
    assert not plain.writes
    told = seen(lambda i, w: function(i, w, max_norm=0.01), i=INDEX[None], w=leaf(3, 2))
    assert told.changed == {"w"}
    (facts,) = row(f"F.{function.__name__}").groups
    assert facts.writes == ("weight",)
    assert "max_norm" in facts.writes_when


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("torch.unique", torch.unique),
        ("x.unique", lambda x: x.unique(return_inverse=True)),
        ("torch.unique_consecutive", torch.unique_consecutive),
        ("torch.floor_divide", lambda x: x // 2),
        ("x.geqrf", lambda x: x.geqrf()),
    ],
)
def test_without_a_derivative_backward_raises(name: str, call: Callable[..., Any]) -> None:
    x = leaf(3, 3)
    made = call(x)
    with pytest.raises(RuntimeError, match="not implemented"):
        (made if isinstance(made, torch.Tensor) else made[0]).sum().backward()
    assert row(name).graph is Graph.REFUSED


def test_a_derivative_for_one_argument_alone_is_told() -> None:
    x, y = leaf(3), leaf(3)
    torch.special.gammainc(x.detach(), y).sum().backward()
    with pytest.raises(RuntimeError, match="not implemented"):
        torch.special.gammainc(x, y.detach()).sum().backward()
    (facts,) = row("torch.igamma").groups
    assert facts.graph is Graph.KEPT
    assert facts.graph_when == "backward raises for the gradient of x: not implemented"


def test_where_with_one_argument_cuts() -> None:
    assert seen(lambda x: torch.where(x), x=leaf(3)).graph is Graph.CUT
    assert row("torch.where(cond)").graph is Graph.CUT
    assert seen(lambda c, x, y: torch.where(c, x, y), c=MASK, x=leaf(3), y=leaf(3)).graph is Graph.KEPT
    groups: dict[tuple[str, ...], Facts] = {facts.overloads: facts for facts in stored()["where"].groups}
    assert groups[("",)].graph is Graph.CUT
    assert groups[("self",)].graph is Graph.KEPT


def test_what_is_kept_in_some_calls_alone_is_told_so() -> None:
    assert "or nothing, depending on the arguments" in dict(facts_of(row("torch.einsum")))["backward"]
    assert "depending" not in dict(facts_of(row("torch.exp")))["backward"]
