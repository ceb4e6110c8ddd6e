"""A write into a temporary copy that nobody keeps.

## What it does
Reports an in-place write whose target is the result of advanced indexing (a boolean mask, an index tensor, a
list) and is dropped right after: `x[mask].zero_()`, `x[mask][:, 0] = 1`, `x[a][b] = v`.

## Why it matters
Basic slices are views, advanced indexing copies. The write lands in the copy, the copy is thrown away, and
`x` keeps its old values without any error.

## Instead
One index assignment on the original: `x[mask] = 0`, `x[..., 0][mask] = 1` (slice first, mask last),
`x[a & b] = v`, or `x.masked_fill_(mask, 0)`, `x.index_fill_(0, index, 0)`.

## Fix safety
Safe for `x[index].fill_(v)` and `x[index].zero_()` where `x` is known to be in no graph: the line has no
other effect and can only mean the assignment. Unsafe otherwise: a write that now arrives can hit a leaf that
requires grad or a tensor that a backward still reads, and PyTorch then stops the program.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import AssignThroughIndex, Because, Finding, Fix
from tensafe.rules import Bad, Good

CODE = "TS106"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.DISCARDED
HELP = """assign through one index on the original: `x[mask] = v`, `x[..., 0][mask] = v` (slice first, mask
last), `x[a & b] = v`"""

SETUP = """
import torch
scores = torch.rand(5, 3)
weak = scores[:, 0] < 0.5
"""
EXAMPLES = [
    Bad(
        """
        scores[weak].zero_()  # finds TS106
        """,
        fixed=("scores[weak].zero_()", "scores[weak] = 0"),
    ),
    Bad(
        """
        rows = torch.tensor([0, 2])
        scores[rows].fill_(1.0)  # finds TS106
        """,
        fixed=("scores[rows].fill_(1.0)", "scores[rows] = 1.0"),
    ),
    Bad("""
        scores[weak][:, 1] = 1.0  # finds TS106
        """),
    Bad("""
        scores[[0, 2]][0] += 1.0  # finds TS106
        """),
    Good(
        """
        scores[weak] = 0.0
        scores[1:3][0] = 2.0
        scores[..., 0][weak] = 1.0
        """,
        because="slices are views, and the last index is an assignment on one",
    ),
    Good(
        """
        picked = scores[weak]
        picked.zero_()
        total = picked.sum()
        """,
        because="the copy is kept",
    ),
    Good(
        """
        doubled = scores[weak].mul_(2)
        """,
        because="the result of the in-place call is used",
    ),
]


def find(call: Call, history: History) -> Iterator[Finding]:
    target = call.values["written"]
    copied, written = target.last(Kind.COPIED), target.last(Kind.WRITTEN)
    if not copied or not written or not written.site or copied.order > written.order:
        return
    because: tuple[Because, ...] = ()
    if copied.site and copied.site != written.site:
        because = (Because(copied.site, "this index makes a copy", when="before"),)
    yield Finding(
        CODE,
        message=f"`{written.op}` writes into a temporary copy made by {copied.op}; the original is unchanged",
        at=written.site,
        label="written here, then dropped",
        because=because,
        fix=Fix(
            AssignThroughIndex(written.site),
            safe=target.in_graph is False,
            title="assign through the index",
        ),
    )
