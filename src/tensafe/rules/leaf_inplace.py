"""An in-place write to a leaf that requires grad, or to a view of one, while recording is on.

## What it does
Reports the write (`weight -= lr * weight.grad`, `layer.weight[...] = kernel`, `F.relu(x, inplace=True)` on
an input that requires grad) that PyTorch refuses, and where the leaf was made.

In source it is reported where the leaf is made by the function or program itself, or where that calls
`backward`: whether somebody calls a function under `no_grad`, only a run can tell.

## Why it matters
The gradient of a leaf is collected for the very values that it has: a recorded write would make the leaf a
result of a computation, so PyTorch stops with *a leaf Variable that requires grad is being used in an
in-place operation*. The cures that forums hand out change what the program means: writing through `.data`
hides the write from autograd, so that a backward still to come uses wrong values and nobody says so;
`weight = weight - ...` makes a new tensor that the optimizer does not hold; `requires_grad = False` stops
training it.

## Instead
Put the update under `with torch.no_grad():` (an optimizer does the same), or copy first when the result is
meant to have a gradient: `y = x.clone()`, then write to `y`.

## Fix safety
There is no automatic fix: whether the write is an update or a part of the computation is not in the line.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import Because, Finding
from tensafe.rules import Bad, Good

CODE = "TS203"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.REFUSED
HELP = """put an update under `with torch.no_grad():`, or write to a `clone()` when the result needs a
gradient; `.data` only hides the write from autograd"""

SETUP = """
import torch
weight = torch.zeros(3, requires_grad=True)
layer = torch.nn.Linear(2, 2)
"""
EXAMPLES = [
    Bad(
        """
        weight.sum().backward()
        weight -= 0.1 * weight.grad  # finds TS203
        """,
        raises=True,
    ),
    Bad(
        """
        layer.weight[0] = torch.ones(2)  # finds TS203
        """,
        raises=True,
    ),
    Bad(
        """
        torch.nn.functional.relu(weight, inplace=True)  # finds TS203
        """,
        raises=True,
    ),
    Good(
        """
        weight.sum().backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            layer.weight[0] = torch.ones(2)
        """,
        because="the update is not recorded",
    ),
    Good(
        """
        try:
            weight.add_(1)
        except RuntimeError:
            weight = weight + 1
        """,
        because="the program expects the refusal",
    ),
]
NOTES = {"leaf": "a leaf that requires grad", "view of a leaf": "a view of a leaf that requires grad"}


def find(call: Call, history: History) -> Iterator[Finding]:
    target = call.values["target"]
    if call.note not in NOTES or call.site is None:
        return
    made = target.last(Kind.MADE)
    because = (Because(made.site, "the leaf comes from here", when="before"),) if made and made.site else ()
    what = f"`{target.label}`, {NOTES[call.note]}" if target.label else NOTES[call.note]
    yield Finding(
        CODE,
        message=f"{_by(call.op)} writes to {what}, while recording is on: PyTorch refuses",
        at=call.site,
        label="written in place here",
        because=because,
    )


def _by(op: str) -> str:
    return f"`{op}`" if op else "this line"
