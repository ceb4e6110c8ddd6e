"""A tensor that backward still needs is changed behind autograd's back: the gradient is wrong, and nothing
raises.

## What it does
Reports a write to a tensor saved for backward that goes past autograd's version counter: through `.data`,
through a NumPy array or a raw pointer over the same memory, through the storage, or by a fused optimizer step
before a second backward.

## Why it matters
PyTorch's own check compares version counters. These writes do not move it, so `backward()` computes with the
new values and returns a wrong gradient without a word.

## Instead
Write to a copy: `x.detach().clone()`, `array.copy()` before `torch.from_numpy`, `torch.empty_like(x)` for a
kernel's output. For a scaling that belongs to the model, use a recorded operation (`x = x * scale`). Step a
fused optimizer only after the last backward that needs the old weights.

## Fix safety
There is no automatic fix: whether the new or the old values are meant is the author's to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind, Moment
from tensafe.findings import Because, Finding, When
from tensafe.rules import Bad, Good

CODE = "TS202"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.BACKWARD
HELP = """write to a copy (`x.detach().clone()`, `array.copy()`, `torch.empty_like(x)`) or use a recorded
operation (`x = x * scale`); no error will ever tell you: the version counter does not see this write"""

SETUP = """
import numpy as np
import torch
weight = torch.ones(3, requires_grad=True)
"""
EXAMPLES = [
    Bad("""
        gate = weight.tanh()
        gate.data.mul_(0.5)  # finds TS202
        gate.sum().backward()
        """),
    Bad("""
        gate = weight.tanh()
        gate.data[0] = 0.0  # finds TS202
        gate.sum().backward()
        """),
    Bad("""
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
        inner = torch.ones(1, 2, requires_grad=True)
        loss = model(inner).pow(2).sum()
        loss.backward(retain_graph=True)
        optimizer.step()  # finds TS202
        loss.backward()
        """),
    Good(
        """
        gate = weight.tanh()
        shown = gate.detach().clone()
        shown.mul_(0.5)
        gate.sum().backward()
        """,
        because="the write goes to a copy",
    ),
    Good(
        """
        gate = weight.tanh()
        peak = gate.detach().numpy().max()
        (gate / float(peak)).sum().backward()
        """,
        because="the array is only read",
    ),
    Good(
        """
        with torch.no_grad():
            weight.data.mul_(0.5)
        weight.exp().sum().backward()
        """,
        because="nothing was saved before the write",
    ),
]


def find(call: Call, history: History) -> Iterator[Finding]:
    saved = call.values["saved"]
    kept = saved.last(Kind.SAVED)
    write = kept and history.last_write(saved.storages, since=kept)
    if not kept or not write or write.counted:
        return
    exported = saved.last(Kind.EXPORTED)
    at = write.site or (exported and exported.site) or kept.site
    if at is None:
        return
    before: When = "before" if write.site else ""
    because = [Because(kept.site, f"saved here for {kept.op}", when=before)] if kept.site else []
    if exported and exported.site and exported.site != at:
        handed = f"the memory was handed out here by `{exported.op}`"
        earlier = 0 if exported.order < kept.order else len(because)
        because.insert(earlier, Because(exported.site, handed, when=before))
    if call.site:
        because.append(Because(call.site, "backward computes with the new values here", when="after"))
    who = f"`{write.op}` overwrites" if write.op else "a write that is no torch call overwrites"
    yield Finding(
        CODE,
        message=f"{who} what {kept.op} still needs, unseen by autograd: the gradient is silently wrong",
        at=at,
        label=_label(write, exported is not None and at == exported.site),
        because=tuple(because),
    )


def _label(write: Moment, handed_out_here: bool) -> str:
    if write.site is None:
        return (
            "written through the memory handed out here"
            if handed_out_here
            else "saved here, then overwritten"
        )
    return "most likely written here" if write.note else "written here, past the version counter"
