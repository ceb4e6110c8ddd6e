"""An example for operations that have none by hand: the first call that runs and shows the row."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F

from tensafe.ops.from_torch.observing import storages, tensors_in
from tensafe.ops.row import Result, Row

_AFTER_X = """
|1|0|2|0, 1|x|v|(4, 3)|torch.ones(3, 4)|mask|x, x|0, index|0, index, x[:2]|0, index, 1.0|mask, 0.0|0, 0, 2
torch.float64|torch.eye(4)|index, x[index]|0, torch.zeros(1, 4, dtype=torch.int64)|index, 0|mask[:, None], x
0, torch.zeros(1, 4, dtype=torch.int64), x|0, torch.zeros(1, 4, dtype=torch.int64), 1.0|x > 3, x|x > 3|(0, 1)
x > 3, 0.0|0, 1, 2|torch.ones(3), v|0, (3, 1)|(2, 2), (4, 1)|(2, 2), (4, 1), 0|(index,), x[index]|[1, 2]
1, 0, 1
0, index, x[:2], "mean"|0, torch.zeros(1, 4, dtype=torch.int64), x, "sum"|1.0, 0|x.t()|x.t(), x|[0, 1], [1, 0]
index|v, v|0, index, torch.ones(2, 4)|(index,), torch.ones(2, 4)|index, torch.ones(2)|(3, 4), 1.0
torch.ones(3, 4), 0.5
0, torch.zeros(1, 4, dtype=torch.int64), torch.ones(1, 4)|torch.ones(1, 4, 3)|torch.eye(4), torch.eye(4)
x, torch.eye(4)|0, index, torch.ones(2, 4), "mean"
0, torch.zeros(1, 4, dtype=torch.int64), torch.ones(1, 4), "sum"
index, torch.zeros(2, dtype=torch.int64)|v, 0, 0|(4, 3), (3, 1)|x > 3, torch.ones(3, 4)
"""
_FUNCTION = """
x|[x, x]|x, x|x, 1|x, 0|x, 2|x, v|x, 0, 1|x[0], x[1]|x[:, :3]|torch.eye(3)|x, torch.eye(4)|x, (4, 3)|x, (1, 1)
x, x, x|index|index, x|3|(3, 4)|0, 3|2, (3, 4)|x > 3|x > 3, x > 3|mask|index, index|x, 0, index|x, index
x[None]|x[None], 2|x[None, None]|x[None, None], 2|x[None], x[None]|x, 0.5, True|x, 0.0, 1.0|x, mask, 0.0
x[:, :3], torch.tensor([0, 1, 2])|x, torch.eye(4), v|torch.eye(3), torch.eye(3)|"ij,kj->ik", [x, x]|[0, 1]
torch.eye(3), x|x[:, :3], torch.eye(3)|x, torch.eye(4), torch.eye(4)|x[None, None], torch.ones(1, 1, 2, 2)
x[None], torch.ones(1, 3, 2)|x[None], torch.ones(3, 1, 2)|x[None, None, None], torch.ones(1, 1, 1, 2, 2)
x[None, None], torch.ones(1, 1, 1, 1)|x[None, None, None]|x[None, None, None], 1|x[None], 1|x, 0, index, 1.0
x[None, None], (6, 8)|x, (4,)|v[:3], x, v|x, x, torch.ones(3)|x, x, torch.ones(3, 4)|x, x, torch.ones(2, 4, 4)
x[None], 3|x, 0, index, x[:2]|x, torch.ones(1)|0, 1, 3|index, 3|x[0], 3|x, [1]|x, [0, 1]|torch.complex(x, x)
x, x[0], v, v, True|x, x[0], x[0]|torch.ones(2), x|x[:, :3], 3|x.double()|(3, 4), 2.0|(3, 4), (4, 1)|3, 4
"""


def _split(text: str) -> list[str]:
    return [one for line in text.strip("\n").splitlines() for one in line.split("|")]


def with_examples(rows: dict[str, Row]) -> dict[str, Row]:
    """The rows, with an example where one was found."""
    found = {}
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        for name, row in rows.items():
            wanted = row.kind in ("aten", "python") and row.spelled and not row.examples
            example = _example(row) if wanted else ""
            found[name] = replace(row, examples=(example,)) if example else row
    return found


def _setting() -> dict[str, Any]:
    return {
        "torch": torch,
        "F": F,
        "x": torch.arange(12.0).reshape(3, 4),
        "v": torch.full((4,), 9.0),
        "mask": torch.tensor([True, False, True]),
        "index": torch.tensor([0, 2]),
    }


def _example(row: Row) -> str:
    return next((made for code in _candidates(row) if (made := _run(code, row))), "")


def _candidates(row: Row) -> Iterator[str]:
    first = row.spelled[0]
    name = first.rpartition(".")[2]
    if name.startswith("_") or not name.isidentifier():
        return
    if not first.startswith("x."):
        yield from (f"{first}({given})" for given in _split(_FUNCTION))
    elif isinstance(inspect.getattr_static(torch.Tensor, name, None), property) or not callable(
        getattr(torch.Tensor, name, None)
    ):
        yield first
    else:
        for receiver in ("x", "x[:, :3]", "index", "(x > 3)", "v", "x[None]", "x.sub_(5.5)"):
            yield from (f"{receiver}.{name}({given})" for given in _split(_AFTER_X))


def _run(code: str, row: Row) -> str:
    """The example with its comment; empty where torch refuses it, or it shows something else."""
    names = _setting()
    before = names["x"].clone()
    torch.manual_seed(0)
    try:
        result = eval(code, names)
    except Exception:
        return ""
    x, given = names["x"], list(tensors_in(result))
    with contextlib.suppress(RuntimeError, NotImplementedError):
        for comment in _comments(row):
            if _holds(comment, result, given, x, before):
                return f"{'n' if comment == 'a value' else 'y'} = {code}{_part(result)}  # {comment}"
    return ""


def _comments(row: Row) -> tuple[str, ...]:
    return {
        Result.COPY: ("a copy",),
        Result.VIEW: ("a view of x",),
        Result.EITHER: ("a view of x", "a copy", "x itself"),
        Result.ITSELF: ("writes x",) if row.writes else ("x itself",),
        Result.VALUE: ("a value",),
        Result.NOTHING: (),
    }[row.gives]


def _part(result: Any) -> str:
    return "[0]" if isinstance(result, tuple | list) and isinstance(result[0], torch.Tensor) else ""


def _holds(
    comment: str, result: Any, given: list[torch.Tensor], x: torch.Tensor, before: torch.Tensor
) -> bool:
    changed = x.shape != before.shape or not torch.equal(x, before)
    if comment == "a value":
        return not given and result is not None and not changed
    if (
        not given
        or (changed and comment not in ("writes x", "x itself"))
        or given[0].layout is not torch.strided
    ):
        return False
    shares = bool(storages(given[0]) & storages(x))
    return {
        "a copy": not any(storages(one) & storages(x) for one in given),
        "a view of x": shares and given[0] is not x,
        "x itself": given[0] is x,
        "writes x": changed and shares,
    }[comment]
