"""A copy of a tensor that nobody needed.

## What it does
Reports copies of a temporary that nothing else holds: `x[rows].clone()`, where indexing has already copied,
`torch.cat(parts).clone()`, `np.array(x).copy()`. A run reports, in bytes by line, also copies that died
unwritten while the memory they were copied from was not written either, and `torch.tensor(array)` on an array
that is dropped right after. Source shows the former where it knows every call in between, the latter as a
notice.

## Why it matters
Each copy costs its bytes in time and, for as long as it lives, in memory. A copy is needed where one side is
written while the other is still read; here neither was.

## Instead
Use the tensor itself; `torch.from_numpy(array)` takes an array over without copying it. A copy that keeps a
small part of a large tensor is no needless one, and is not reported.

## Fix safety
Safe for `.clone()` of what the same expression has just made, where source shows it: nobody can tell the
difference. Unsafe for `.copy()` of an array, which may also change the order of its memory, where an argument
is the index, which may be a slice in another call, and for what a run saw. There is no automatic fix for a
copy that only was not written.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind, Moment
from tensafe.findings import DropCall, Finding, Fix, Site, size
from tensafe.rules import Bad, Good

CODE = "TS301"
SINCE = "0.1"
SEVERITY = "warning"
AT = Kind.COPIED
HELP = """use the tensor itself, or `torch.from_numpy(array)`, which copies nothing"""

SETUP = """
import numpy as np
import torch
table = torch.ones(4096, 2048)
rows = torch.arange(4096)
"""
EXAMPLES = [
    Bad(
        """
        for _ in range(3):
            picked = table[rows].clone()  # finds TS301
            total = picked.sum()
        """,
        fixed=("table[rows].clone()", "table[rows]"),
    ),
    Bad("""
        for _ in range(3):
            batch = torch.tensor(np.ones((4096, 2048)))  # finds TS301 (run)
        """),
    Good(
        """
        for _ in range(3):
            picked = table[rows]
            batch = torch.from_numpy(np.ones((4096, 2048)))
        """,
        because="indexing has made a copy, and the array is taken over",
    ),
    Good(
        """
        for _ in range(3):
            before = table.clone()
            table.add_(1)
            change = (table - before).sum()
        """,
        because="the table is written while the copy is alive",
    ),
]


def find(call: Call, history: History) -> Iterator[Finding]:
    copied = call.values["copy"].last(Kind.COPIED)
    if (
        copied is None
        or copied.site is None
        or copied.op not in ("Tensor.clone", "torch.clone", "torch.tensor", "ndarray.copy")
    ):
        return
    if not call.note:
        yield _of_fresh(call, copied)
        return
    nbytes, times = call.note.split(" bytes in ")
    source = "a temporary" if copied.note else "memory"
    yield Finding(
        CODE,
        message=f"of what `{copied.op}` copied here in {times} calls, {size(int(nbytes))} came from "
        f"{source} that nobody wrote, and nobody wrote the copies",
        at=copied.site,
        label="copied here",
        fix=_without(copied.site, safe=False) if copied.note and copied.op == "Tensor.clone" else None,
    )


def _of_fresh(call: Call, copied: Moment) -> Finding:
    """In source: memory that was made in the same breath is copied once more."""
    assert copied.site is not None
    made = call.values["copy"].last(Kind.MADE)
    return Finding(
        CODE,
        message=f"`{copied.op}` copies the fresh result of {copied.note}, which nothing else holds"
        if copied.note
        else f"`{copied.op}` makes a copy that is only read, of a tensor that nobody writes meanwhile",
        at=copied.site,
        label="copied again here" if copied.note else "copied here",
        fix=_without(copied.site, safe=copied.op == "Tensor.clone" and not made.note) if made else None,
    )


def _without(site: Site, safe: bool) -> Fix:
    return Fix(DropCall(site), safe=safe, title="leave out the copy")
