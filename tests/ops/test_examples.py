"""Every example in the table is run; the comment on it is what must come of it."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ops.conftest import OTHER_TORCH
from tensafe.ops.advice import ADVICE
from tensafe.ops.row import Graph, Result, Row
from tensafe.ops.stored import stored
from tensafe.ops.telling import examples_of

EXAMPLES = [(row.name, example) for row in stored().rows() for example in row.examples]


def setting() -> dict[str, Any]:
    """The names that examples use; `y` is what they make."""
    return {
        "torch": torch,
        "F": F,
        "np": np,
        "copy": copy,
        "x": torch.arange(12.0).reshape(3, 4),
        "v": torch.full((4,), 9.0),
        "mask": torch.tensor([True, False, True]),
        "index": torch.tensor([0, 2]),
        "a": np.ones(3, np.float32),
    }


def span(value: Any) -> tuple[int, int]:
    """The addresses of a tensor's storage, of an array, or of a storage itself."""
    if isinstance(value, np.ndarray):
        return value.ctypes.data, value.ctypes.data + value.nbytes
    storage = value.untyped_storage() if isinstance(value, torch.Tensor) else value
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def share(one: Any, other: Any) -> bool:
    (first, end), (second, stop) = span(one), span(other)
    return first < stop and second < end


def outcomes(names: dict[str, Any], before: torch.Tensor) -> set[str]:
    """Everything that may truly be said of what happened."""
    x, a, y = names["x"], names["a"], names.get("y")
    said = {"writes x"} if not torch.equal(before, x) else {"x unchanged"}
    if "n" in names:
        said |= {"a value"} if not isinstance(names["n"], torch.Tensor) else set()
    if isinstance(y, torch.Tensor):
        said |= {"x itself"} if y is x else set()
        said |= {"a copy"} if not share(y, x) and not share(y, a) else set()
        said |= {"a view of x"} if share(y, x) and y is not x else set()
    if isinstance(y, np.ndarray):
        said |= {"a copy"} if not share(y, x) and not share(y, a) else set()
    shown = y if y is not None else a
    said |= {"shares with x"} if share(shown, x) and shown is not x else set()
    said |= {"shares with a"} if y is not None and share(y, a) else set()
    return said


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_an_example_does_what_its_comment_says(name: str, example: str) -> None:
    code, _, comment = example.partition("  # ")
    if OTHER_TORCH and stored()[name].kind != "form" and name not in ADVICE:
        pytest.skip("made for the torch that the table is of")
    names = setting()
    torch.manual_seed(0)
    before = names["x"].clone()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if comment == "raises":
            with pytest.raises(RuntimeError):
                exec(code, names)
            return
        exec(code, names)
    assert comment in outcomes(names, before)
    assert comment in allowed(stored()[name])


def allowed(row: Row) -> set[str]:
    """What the facts of a row let an example say."""
    said = {
        Result.COPY: {"a copy", "x unchanged"},
        Result.VIEW: {"a view of x", "shares with x", "shares with a", "writes x", "x itself"},
        Result.EITHER: {"a view of x", "a copy", "x itself", "shares with a"},
        Result.ITSELF: {"x itself", "writes x", "x unchanged"},
        Result.VALUE: {"a value"},
        Result.NOTHING: {"x unchanged"},
    }[row.gives]
    return said | ({"writes x"} if row.writes else set()) - ({"x unchanged"} if row.writes else set())


def test_no_example_is_shown_that_is_not_in_the_table() -> None:
    """So that the test above has run it."""
    shown = [(row.name, one) for row in stored().rows() for one in examples_of(row)]
    assert shown == EXAMPLES


def test_most_operations_have_an_example() -> None:
    rows = [row for row in stored().rows() if row.spelled and row.kind in ("aten", "python")]
    public = [row for row in rows if not row.name.startswith("_")]
    assert sum(bool(row.examples) for row in public) >= 0.8 * len(public)


# Raise where x requires a gradient.
WITHOUT_A_GRAPH = ("apply_", "share_", "out=", "np.array")


def test_forms_that_cut_the_graph_cut_it() -> None:
    wrong = []
    for row in stored().rows():
        for example in row.examples if row.kind == "form" else ():
            names = setting()
            names["x"].requires_grad_()
            code = example.partition("  # ")[0]
            if not code.startswith("y = ") or "x" not in code or any(one in code for one in WITHOUT_A_GRAPH):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(code, names)
            y = names["y"]
            cut = isinstance(y, torch.Tensor) and y is not names["x"] and y.grad_fn is None
            if isinstance(y, torch.Tensor) and y is not names["x"] and cut != (row.graph is Graph.CUT):
                wrong.append(example)
    assert not wrong


def test_the_comparison_can_fail() -> None:
    names = setting()
    before = names["x"].clone()
    exec("y = x.clone()", names)
    assert outcomes(names, before) == {"a copy", "x unchanged"}
    exec("y = x[0]; x.zero_()", names)
    assert outcomes(names, before) == {"a view of x", "shares with x", "writes x"}
