"""An array and a tensor share memory, one side is written, and the other is used as if it had a copy.

## What it does
Reports `torch.from_numpy(a)` written in place by a line that gets the same elements again later (a dataset
that is normalised once more in each epoch), arrays from `tensor.numpy()` or tensors from one refilled array
that are collected as a history, and an array that its owner hands out again and again while the caller still
holds the "old" one. Arrays that pass through another library are seen by `tensafe run` only.

## Why it matters
`torch.from_numpy`, `torch.as_tensor` and `Tensor.numpy` copy nothing. Every write on one side shows on the
other, PyTorch's version counter does not see what NumPy writes, and nothing raises: a history holds the last
value many times, stored data drifts from pass to pass. `.cpu()` and `.detach()` are no copies either on a CPU
tensor.

## Instead
Copy where ownership changes: `tensor.numpy().copy()`, `torch.tensor(array)`,
`torch.from_numpy(array).clone()`, `return self.obs.copy()`; or use the out-of-place operation (`sub` for
`sub_`).

## Fix safety
There is no automatic fix: the copy belongs where the memory changes hands, which may be elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind, Moment
from tensafe.findings import Because, Finding, When
from tensafe.rules import Bad, Good

CODE = "TS105"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.EXPORTED
HELP = """copy where the memory changes hands (`tensor.numpy().copy()`, `torch.tensor(array)`,
`torch.from_numpy(array).clone()`), or use the out-of-place operation"""

SETUP = """
import numpy as np
import torch
from torch import nn
"""
EXAMPLES = [
    Bad("""
        images = np.arange(6, dtype=np.float32).reshape(2, 3)

        def load(index):
            image = torch.from_numpy(images[index])
            return image.sub_(2.5).div_(1.5)  # finds TS105

        for epoch in range(2):
            batch = torch.stack([load(0), load(1)])
        """),
    Bad("""
        layer = nn.Linear(2, 1)
        path = []
        for _ in range(3):
            path.append(layer.bias.detach().numpy())  # finds TS105
            with torch.no_grad():
                layer.bias.sub_(0.1)
        """),
    Bad("""
        frame = np.zeros(3, dtype=np.float32)
        frames = []
        for step in range(4):
            frame[:] = step
            frames.append(torch.from_numpy(frame))  # finds TS105
        """),
    Good(
        """
        images = np.arange(6, dtype=np.float32).reshape(2, 3)

        def load(index):
            image = torch.from_numpy(images[index])
            return image.sub(2.5).div(1.5)

        for epoch in range(2):
            batch = torch.stack([load(0), load(1)])
        """,
        because="each operation makes a new tensor",
    ),
    Good(
        """
        layer = nn.Linear(2, 1)
        path = []
        for _ in range(3):
            path.append(layer.bias.detach().numpy().copy())
            shown = layer.bias.detach().numpy()
            with torch.no_grad():
                layer.bias.sub_(0.1)
        frame = np.zeros(3, dtype=np.float32)
        for step in range(4):
            frame[:] = step
            scaled = torch.from_numpy(frame).div_(2.0)
        """,
        because="what is kept is copied, and an array that is refilled each time may be written",
    ),
    Good(
        """
        totals = np.zeros(3, dtype=np.float32)
        for step in range(3):
            view = torch.from_numpy(totals)
            view += torch.ones(3) * step
        """,
        because="adding new data into a buffer that both sides see is what sharing is for",
    ),
]

_MESSAGES = {
    "again": "`{op}` writes through the tensor into the array it was made of, which is read again later",
    "tensors": "the tensors collected here all share one array, which is refilled: they hold the same values",
    "arrays": "the arrays collected here share the tensor's memory, which is written: all hold one value",
    "array": "`{op}` writes through the array into the tensor it was made of: `{label}` is read again later",
    "kept": "`{op}` also changes `{label}`, which was made without a copy and is read again later",
    "refilled": "this returns the array itself, which is refilled: the caller's old one is the new",
}
_LABELS = {
    "again": "the array is changed here",
    "tensors": "shares the array's memory",
    "arrays": "shares the tensor's memory",
    "array": "the tensor is changed here",
    "kept": "written here",
    "refilled": "handed out without a copy",
}
_ROLES = {
    Kind.EXPORTED: "made without a copy here, and again later",
    "once": "made without a copy here",
    Kind.WRITTEN: "written here",
    Kind.COPIED: "read here as if it were the old one",
}


def find(call: Call, history: History) -> Iterator[Finding]:
    memory = call.values.get("memory")
    if memory is None or call.site is None or call.note not in _MESSAGES:
        return
    because = [
        Because(moment.site, _ROLES[moment.note or moment.kind], when=_when(moment, call.note))
        for moment in memory.trail
        if moment.site is not None and moment.site != call.site
    ]
    yield Finding(
        CODE,
        message=_MESSAGES[call.note].format(op=call.op, label=memory.label),
        at=call.site,
        label=_LABELS[call.note],
        because=tuple(because),
    )


def _when(moment: Moment, note: str) -> When:
    """What was handed out earlier is written and read later."""
    if moment.kind is Kind.WRITTEN:
        return "after" if note in ("arrays", "refilled") else ""
    return "after" if moment.kind is Kind.COPIED else "before"
