"""Memory shared between processes: kept too long, written unseen, overwritten early, or larger than meant.

## What it does
Reports batches from `DataLoader` workers that are collected as they are, a dataset that fills a cache in its
workers, an attribute of a dataset that is set after persistent workers have started, a tensor that is sent
through a queue, written and sent again, and `share_memory_()` of a small slice. How many batches are kept,
and how much of its storage a slice is, only `tensafe run` sees: to `tensafe check` these two are notices.

## Why it matters
A tensor from a worker holds an open file of shared memory: some hundred of them and the program stops with
*Too many open files* or *received 0 items of ancdata*. Workers have a copy of the dataset from the moment
they started: what they store is gone with them, and what the main process sets later never reaches them. A
queue sends a handle, not the values: the receiver sees what is written afterwards. A slice shares its whole
storage.

## Instead
Keep `batch.clone()`; fill a cache before the loader starts or put it into a tensor with `share_memory_()`;
keep state in such a tensor, too; send a `clone()`; share `x[a:b].clone()`. Raising `ulimit -n` or
`set_sharing_strategy("file_system")` moves the first limit and leaks files when a process dies.

## Fix safety
There is no automatic fix: a copy costs memory, and shared state needs its own order of reads and writes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import Because, Finding, When
from tensafe.rules import Bad, Good

CODE = "TS108"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.SHARED
HELP = """keep and send copies (`batch.clone()`), keep state that all processes see in a tensor with
`share_memory_()`"""

SETUP = """
import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Squares(Dataset):
    def __init__(self, shared):
        self.cache = torch.zeros(2).share_memory_() if shared else {}
        self.ready = torch.zeros(2, dtype=torch.bool).share_memory_()

    def __len__(self):
        return 2

"""
EXAMPLES = [
    Bad("""
        class Cached(Squares):
            def __getitem__(self, index):
                if index not in self.cache:
                    self.cache[index] = torch.tensor(index**2)  # finds TS108
                return self.cache[index]

        data = Cached(shared=False)
        for epoch in range(2):
            for batch in DataLoader(data, num_workers=1, multiprocessing_context="fork"):
                pass
        """),
    Good(
        """
        class Cached(Squares):
            def __getitem__(self, index):
                if not self.ready[index]:
                    self.cache[index] = float(index**2)
                    self.ready[index] = True
                return self.cache[index]

        data = Cached(shared=True)
        for epoch in range(2):
            for batch in DataLoader(data, num_workers=1, multiprocessing_context="fork"):
                pass
        """,
        because="the cache is a tensor in shared memory",
    ),
]

_MESSAGES = {
    "kept": "this keeps {label}tensors as workers sent them: each holds an open file of shared memory",
    "cache": "`{label}` is filled in a worker's own copy of the dataset, which ends with the worker",
    "state": "`{label}` is set here, but persistent workers keep the value that it had when they started",
    "resent": "`{op}` writes to memory that was sent to another process, which sees the new values",
    "slice": "`{op}` of a slice moves its whole storage to shared memory: {label}",
}
_LABELS = {
    "kept": "kept without a copy",
    "cache": "stored where no other process sees it",
    "state": "set for this process only",
    "resent": "overwritten after it was sent",
    "slice": "shares more than the slice",
}
_ROLES: dict[str | Kind, tuple[str, When]] = {
    "received": ("received from a worker here", "before"),
    "again": ("iterated again here", "after"),
    "workers": ("workers get a copy of the dataset here", "before"),
    "sent": ("sent here, and again", "before"),
    Kind.MADE: ("made here", "before"),
    Kind.COPIED: ("read in the workers here", "after"),
}


def _label(call: Call, label: str) -> str:
    """The number of tensors kept, where it was counted, stands before the word."""
    return f"{label} " if call.note == "kept" and label else label


def find(call: Call, history: History) -> Iterator[Finding]:
    shared = call.values.get("shared")
    if shared is None or call.site is None or call.note not in _MESSAGES:
        return
    yield Finding(
        CODE,
        message=_MESSAGES[call.note].format(label=_label(call, shared.label), op=call.op),
        at=call.site,
        label=_LABELS[call.note],
        because=tuple(
            Because(moment.site, role, when=when)
            for moment in shared.trail
            if moment.site is not None and moment.site != call.site
            for role, when in [_ROLES[moment.note or moment.kind]]
        ),
    )
