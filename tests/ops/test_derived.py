"""What the static engine reads off the stored table, and what stays written by hand."""

from __future__ import annotations

import pytest
import torch

from tensafe.ops import OPS, WRITERS, Gives, Op, Saves, out_of_place, words
from tensafe.ops.derived import op_of
from tensafe.ops.row import Facts, Graph, Result, Row
from tensafe.ops.stored import Stored, stored, written
from tensafe.ops.table import _BY_HAND, NOT_WRITERS

BY_HAND = {name: reason for reason, _, names in _BY_HAND for name in words(names)}


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_what_is_written_by_hand_is_not_what_the_table_says(name: str) -> None:
    """Else the row by hand would be needless."""
    try:
        assert op_of(name, stored()) != OPS[name]
    except KeyError:
        assert name in ("type", "squeeze_dims", "conv")


@pytest.mark.parametrize(
    ("facts", "gives", "saves"),
    [
        ({"saves": ()}, Gives.FRESH, Saves.NOTHING),
        ({"saves": (("a", ("a",)),)}, Gives.FRESH, Saves.INPUT),
        ({"saves": (("a", ("result",)),)}, Gives.FRESH, Saves.OUTPUT),
        ({"saves": (("a", ("a", "result")),)}, Gives.FRESH, Saves.BOTH),
        ({"saves": (("a", ("b",)), ("b", ("a",)))}, Gives.FRESH, Saves.FACTORS),
        ({"saves": (("a", ("b",)), ("b", ("a", "b")))}, Gives.FRESH, Saves.DIVISOR),
        ({"saves": (("a", ("a", "b")), ("b", ("a", "b")))}, Gives.FRESH, Saves.INPUTS),
        ({"saves": (("a", ("b",)),)}, Gives.FRESH, Saves.SECOND),
        ({"saves": (("a", ("index",)),)}, Gives.FRESH, Saves.NOTHING),
        ({"saves": (("a", ("values",)),), "results": ("values", "n")}, Gives.FRESH, Saves.OUTPUT),
        ({"gives": Result.VIEW}, Gives.VIEW, Saves.NOTHING),
        ({"gives": Result.EITHER}, Gives.EITHER, Saves.NOTHING),
    ],
)
def test_a_row_in_the_engine_s_words(facts: dict[str, object], gives: Gives, saves: Saves) -> None:
    row = Row(name="f", groups=(Facts(arguments=("a", "b"), **facts),))  # type: ignore[arg-type]
    op = op_of("f", Stored(written([row], "2.13.0")))
    assert (op.gives, op.saves, op.differentiable) == (gives, saves, True)


def test_a_cut_row_is_not_differentiable() -> None:
    row = Row(name="f", groups=(Facts(arguments=("a",), graph=Graph.CUT, saves=(("a", ("a",)),)),))
    op = op_of("f", Stored(written([row], "2.13.0")))
    assert op == Op("f", differentiable=False)


def test_no_name_both_writes_and_does_not() -> None:
    assert not WRITERS & NOT_WRITERS
    assert out_of_place("t_") is None
    assert out_of_place("add_") == OPS["add"]
    assert out_of_place("bitwise_and_") == Op("bitwise_and")


@pytest.mark.parametrize(
    "name", ["abs_", "exp_", "cumprod_", "tril_", "addcmul_", "zero_", "fill_", "clamp_", "pow_", "lerp_"]
)
def test_known_writers_are_among_the_writers(name: str) -> None:
    assert name in WRITERS
    assert hasattr(torch.Tensor, name)
