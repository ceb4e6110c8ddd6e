"""The same unchanged memory is copied again and again by a call that looks like a view.

## What it does
Reports, in bytes by line, `reshape`, `flatten` and `contiguous` when they copy the same unwritten tensor
each time the line runs. `tensafe run --copies` lists every hidden copy of a run, `index`, `to` and `cat`
among them. Source shows the copies, in a loop or in a method, of a tensor whose order it knows and that
nobody writes; of one that comes from elsewhere only a run can tell.

## Why it matters
These calls return a view where the strides allow it, and copy silently where they do not. A copy in the
middle of a forward is mostly needed; one of a weight or a table that does not change is paid for in every
step.

## Instead
Make the copy once, before the loop, and use it there; or store the tensor in the layout in which it is read.

## Fix safety
There is no automatic fix: the copy has to be renewed where the tensor does change.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import Finding, size
from tensafe.rules import Bad, Good

CODE = "TS302"
SINCE = "0.1"
SEVERITY = "warning"
AT = Kind.COPIED
HELP = """make this copy once, outside the loop, or store the tensor in the layout in which it is read"""

SETUP = """
import torch
table = torch.ones(2048, 4096).t()
"""
EXAMPLES = [
    Bad("""
        for step in range(5):
            row = table.reshape(-1)[:4]  # finds TS302
        """),
    Good(
        """
        rows = table.reshape(-1)
        for step in range(5):
            row = rows[:4]
        """,
        because="the copy is made once",
    ),
    Good(
        """
        for step in range(5):
            table.add_(1)
            row = table.reshape(-1)[:4]
        """,
        because="the table changes from step to step",
    ),
]


def find(call: Call, history: History) -> Iterator[Finding]:
    copied = call.values["copy"].last(Kind.COPIED)
    if copied is None or copied.site is None or copied.op.rpartition(".")[2] not in HIDDEN:
        return
    yield Finding(
        CODE,
        message=f"`{copied.op}` {_how_much(call.note)}",
        at=copied.site,
        label="copies each time",
    )


def _how_much(note: str) -> str:
    """The bytes that a run has counted; source tells none."""
    if not note:
        return "copies a tensor that nobody writes, whose order makes it no view, and does so each time"
    nbytes, times = note.split(" bytes in ")
    return f"copied {size(int(nbytes))} of unchanged memory again here, in {times} calls"


HIDDEN = ("reshape", "flatten", "contiguous")
