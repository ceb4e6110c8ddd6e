"""One tensor or module under several places of a container, each of which should have its own.

## What it does
Reports a list or dict made by `[x] * n` or `dict.fromkeys(keys, x)` when one of its tensors is written in
place, and a module that is put into its parent several times by `[layer] * n`.

## Why it matters
Multiplying a list and `fromkeys` repeat the reference, not the object. A write under one key shows under all
of them, and a network built of such a list has the weights of a single layer, although it prints as many.

## Instead
A comprehension runs the constructor once for each place: `[torch.zeros(2) for _ in range(n)]`,
`{key: torch.zeros(2) for key in keys}`, `[nn.Linear(8, 8) for _ in range(n)]`. Where weights are meant to be
shared, keep one module and call it several times.

## Fix safety
There is no automatic fix: whether the object may be made several times is for the author to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import Because, Finding
from tensafe.rules import Bad, Good

CODE = "TS103"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.REPEATED
HELP = """make one object for each place: `[torch.zeros(2) for _ in range(n)]`,
`{key: torch.zeros(2) for key in keys}`"""

SETUP = """
import torch
from torch import nn
names = ["cat", "dog"]
"""
EXAMPLES = [
    Bad("""
        hits = dict.fromkeys(names, torch.zeros(2))  # finds TS103
        for name in names:
            hits[name] += 1
        """),
    Bad("""
        states = [torch.zeros(2)] * 3  # finds TS103
        for step, state in enumerate(states):
            state.add_(step)
        """),
    Bad("""
        layers = [nn.Linear(4, 4), nn.ReLU()] * 3  # finds TS103
        head = nn.Sequential(*layers)
        """),
    Good(
        """
        hits = {name: torch.zeros(2) for name in names}
        for name in names:
            hits[name] += 1
        states = [torch.zeros(2)] * 3
        states = [state + 1 for state in states]
        """,
        because="each key has its own tensor, and repeated ones are only read",
    ),
    Good(
        """
        act = nn.ReLU()
        head = nn.Sequential(nn.Linear(4, 4), act, nn.Linear(4, 4), act)
        layer = nn.Linear(4, 4)
        x = torch.rand(1, 4)
        for _ in range(3):
            x = layer(x)
        """,
        because="a module without weights may be repeated, and calling one layer again shares openly",
    ),
]


def find(call: Call, history: History) -> Iterator[Finding]:
    used = call.values["repeated"].last(Kind.REPEATED)
    if call.site is None:
        return
    module = call.note == "module"
    role = "put into one parent several times here" if module else "written for one of its places here"
    because = (
        ()
        if not used or not used.site or used.site == call.site
        else (Because(used.site, role, when="after"),)
    )
    yield Finding(
        CODE,
        message="this repeats one module: all its places share one set of weights"
        if module
        else f"this repeats one tensor: `{call.op}` under one place changes all of them",
        at=call.site,
        label="the same object for every place",
        because=because,
    )
