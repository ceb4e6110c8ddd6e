"""NumPy is given a tensor that requires grad.

## What it does
Reports `.numpy()` on such a tensor, a NumPy function that converts it by itself (`np.log10(loss)`,
`np.mean(losses)`, `plt.plot(losses)`), and for a list of tensors the line that keeps them with their graph.

In source it is reported where the value certainly requires grad: a parameter, or what a program computes
outside `no_grad` itself. What a caller hands in, only a run can tell.

## Why it matters
An array cannot carry a gradient, so PyTorch stops with *Can't call numpy() on Tensor that requires grad*,
often long after the tensors were collected. Until then every one of them keeps the whole graph of its step
in memory. `detach()` right before the conversion silences the error and keeps that memory; `.data` does
too. And where the value is meant to be trained through, detaching is what stops the training.

## Instead
Keep numbers: `losses.append(loss.item())`. Convert with `tensor.detach().cpu().numpy()` (it shares the
memory of a tensor on the CPU: `.clone()` where one side writes later), measure under `torch.no_grad()`, and
stay in torch for what must train.

## Fix safety
Unsafe: a detached value no longer trains what it was computed from.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind, Moment, Site
from tensafe.findings import Because, Finding, Fix, When, Wrap
from tensafe.rules import Bad, Good

CODE = "TS208"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.REFUSED
HELP = """keep numbers (`loss.item()`), or convert with `tensor.detach().cpu().numpy()`; a value that must
train stays in torch"""

SETUP = """
import numpy as np
import torch
weight = torch.ones(3, requires_grad=True)
"""
EXAMPLES = [
    Bad(
        """
        out = weight * 2
        values = out.numpy()  # finds TS208
        """,
        fixed=("out.numpy()", "out.detach().numpy()"),
        raises=True,
    ),
    Bad(
        """
        losses = []
        for scale in (1.0, 2.0):
            loss = (weight * scale).pow(2).mean()
            losses.append(loss)  # finds TS208
        print(np.mean(losses))
        """,
        raises=True,
    ),
    Bad(
        """
        loss = weight.pow(2).mean()
        print(np.asarray(loss))  # finds TS208
        """,
        fixed=("np.asarray(loss)", "np.asarray(loss.detach())"),
        raises=True,
    ),
    Good(
        """
        losses = []
        for scale in (1.0, 2.0):
            loss = (weight * scale).pow(2).mean()
            losses.append(loss.item())
        print(np.mean(losses), weight.detach().numpy())
        """,
        because="numbers and detached tensors",
    ),
]
NOTES = ("array", "array of a list")


def find(call: Call, history: History) -> Iterator[Finding]:
    target = call.values["target"]
    if call.note not in NOTES or call.site is None:
        return
    kept, made = target.last(Kind.KEPT), target.last(Kind.MADE)
    at, label = call.site, "converted here"
    if call.note == "array of a list" and (first := kept or made) is not None and first.site is not None:
        at, label = first.site, "kept with its graph here" if kept else "made with a graph here"
    places: tuple[tuple[Site | None, str, When], ...] = (
        (_site(made), "made here", "before"),
        (call.site, "converted here: PyTorch refuses", "after"),
    )
    because = [
        Because(site, role, when=when)
        for site, role, when in places
        if site is not None and site.line != at.line
    ]
    what = f"`{target.label}`" if target.label and call.note != "array of a list" else "a tensor"
    yield Finding(
        CODE,
        message=f"{_by(call.op)} is given {what} that requires grad: an array has no gradient",
        at=at,
        label=label,
        because=tuple(because),
        fix=_detached(call) if at == call.site else None,
    )


def _by(op: str) -> str:
    return f"`{op}`" if op else "NumPy"


def _detached(call: Call) -> Fix | None:
    operand = call.values.get("operand")
    made = operand.last(Kind.MADE) if operand is not None else None
    if made is None or made.site is None:
        return None
    return Fix(Wrap(made.site, "{}.detach()"), safe=False, title="detach it first")


def _site(moment: Moment | None) -> Site | None:
    return moment.site if moment is not None else None
