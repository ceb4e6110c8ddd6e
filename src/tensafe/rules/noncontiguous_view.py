"""`.view()` of a tensor whose strides cannot give that shape.

## What it does
Reports the `.view()` that PyTorch refuses, and the call that made the tensor's order differ from that of
its memory: `permute`, `transpose`, `expand`, a slice, `channels_last`. Source shows it where it can follow
the tensor from where it was made; of the arguments of a function only a run knows the strides.

## Why it matters
A view only renames positions in the same memory. After `permute` the elements that the new shape puts side
by side do not lie side by side, so no view can show them, and PyTorch stops. Often it happens only for some
inputs: one device, one memory format, one collate function.

## Instead
`.reshape()` or `.flatten()` copies when it must and gives a view when it can. Write `.contiguous()` where
the tensor is made when several views of it follow, so that it is copied once. Where a later write must
reach the original, no copy helps: order the dimensions first.

## Fix safety
Unsafe: where the view is taken of a copy, a later write into the result no longer reaches the original.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import Because, Finding, Fix, Wrap
from tensafe.rules import Bad, Good

CODE = "TS307"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.REFUSED
HELP = """use `.reshape()`, which copies only when it must, or `.contiguous()` where the tensor is made"""

SETUP = """
import torch
batch = torch.rand(4, 2, 3)
"""
EXAMPLES = [
    Bad(
        """
        steps = batch.permute(1, 0, 2)
        flat = steps.view(-1, 3)  # finds TS307
        """,
        fixed=("steps.view(-1, 3)", "steps.contiguous().view(-1, 3)"),
        raises=True,
    ),
    Bad(
        """
        pixels = torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last)
        flat = pixels.view(2, -1)  # finds TS307
        """,
        fixed=("pixels.view(2, -1)", "pixels.contiguous().view(2, -1)"),
        raises=True,
    ),
    Good(
        """
        steps = batch.permute(1, 0, 2)
        flat = steps.reshape(-1, 3)
        rows = batch.view(-1, 3)
        """,
        because="reshape copies where it must, and the whole batch is contiguous",
    ),
    Good(
        """
        steps = batch.permute(1, 0, 2)
        try:
            flat = steps.view(-1, 3)
        except RuntimeError:
            flat = steps.contiguous().view(-1, 3)
        """,
        because="the program expects the refusal",
    ),
]
NOTES = {
    "view as shape": "cannot give this shape as a view: its elements lie in another order",
    "view as type": "cannot be read as another type: its last dimension has gaps",
    "view as complex": "cannot be read as complex numbers: its last dimension has gaps",
}
MADE = {
    "channels_last": "put into the channels-last order here",
    "slice": "the slice leaves gaps here",
}


def find(call: Call, history: History) -> Iterator[Finding]:
    target = call.values["target"]
    if call.note not in NOTES or call.site is None:
        return
    because = tuple(
        Because(moment.site, MADE.get(moment.op, f"`{moment.op}` changes the order here"), when="before")
        for moment in target.trail
        if moment.kind is Kind.VIEWED and moment.site and moment.site != call.site
    )
    what = f"`{target.label}`" if target.label else "the tensor"
    yield Finding(
        CODE,
        message=f"{what} {NOTES[call.note]}",
        at=call.site,
        label="PyTorch refuses this view",
        because=because,
        fix=_contiguous(call),
    )


def _contiguous(call: Call) -> Fix | None:
    operand = call.values.get("operand")
    made = operand.last(Kind.MADE) if operand is not None else None
    if made is None or made.site is None:
        return None
    return Fix(Wrap(made.site, "{}.contiguous()"), safe=False, title="make it contiguous first")
