"""A copy of a tensor that nobody needed.

## What it does
Reports, in bytes by line, copies that died unwritten while the memory they were copied from was not written
either, and copies of a temporary that nothing else holds: `x[rows].clone()`, where indexing has already
copied, and `torch.tensor(array)` on an array that is dropped right after.

## Why it matters
Each copy costs its bytes in time and, for as long as it lives, in memory. A copy is needed where one side is
written while the other is still read; here neither was.

## Instead
Use the tensor itself; `torch.from_numpy(array)` takes an array over without copying it. A copy that keeps a
small part of a large tensor is no needless one, and is not reported.

## Fix safety
There is no automatic fix: another run may write what this one did not.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import Finding, size
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
    Bad("""
        for _ in range(3):
            picked = table[rows].clone()  # finds TS301 (run)
            total = picked.sum()
        """),
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
        or copied.op not in ("Tensor.clone", "torch.clone", "torch.tensor")
    ):
        return
    nbytes, times = call.note.split(" bytes in ")
    source = "a temporary" if copied.note else "memory"
    yield Finding(
        CODE,
        message=f"of what `{copied.op}` copied here in {times} calls, {size(int(nbytes))} came from "
        f"{source} that nobody wrote, and nobody wrote the copies",
        at=copied.site,
        label="copied here",
    )
