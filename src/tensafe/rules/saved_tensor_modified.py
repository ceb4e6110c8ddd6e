"""A tensor that backward still needs is changed in place.

## What it does
Reports an in-place write to a tensor that autograd saved for a backward which has not run yet: `x += y` on
the output of `exp`, `sigmoid` or `relu`, `x /= x.norm()`, `hidden[mask] = ...` on a layer's input,
`dropout(inplace=True)` after an activation.

## Why it matters
PyTorch stops at `backward()` with *one of the variables needed for gradient computation has been modified by
an inplace operation*, far from the line that wrote, and names neither that line nor the one that saved. The
usual advice, `retain_graph=True`, does not help: it keeps the graph, not the overwritten values. Writing
through `.data` or `.detach()` to silence the error keeps the wrong values and makes the gradient silently
wrong.

## Instead
Write the out-of-place form: `x = x + y`, `x = x / x.norm()`, `torch.where(mask, new, x)`, `inplace=False`.
Or write before the tensor is saved, or to a `clone()`.

## Fix safety
Unsafe: after `x = x + y` the name `x` is a new tensor, and other names for the old one no longer see the sum.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind, Moment
from tensafe.findings import Because, Finding, Fix, OutOfPlace
from tensafe.rules import Bad, Good

CODE = "TS201"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.BACKWARD
HELP = """use the out-of-place form here (`x = x + y` for `x += y`), or write to a `clone()`;
`retain_graph=True` and `.data` do not help: the values that backward needs are gone"""
STEP_HELP = """call every `backward()` that needs these weights before the `step()`, or compute the loss
again after it; `retain_graph=True` does not help: the old weights are gone"""

SETUP = """
import torch
weight = torch.ones(3, requires_grad=True)
"""
EXAMPLES = [
    Bad(
        """
        gate = weight.sigmoid()
        gate *= 2  # finds TS201
        gate.sum().backward()
        """,
        fixed=("gate *= 2", "gate = gate * 2"),
        raises=True,
    ),
    Bad(
        """
        unit = weight * 2
        unit.div_(unit.norm())  # finds TS201
        unit.sum().backward()
        """,
        fixed=("unit.div_(unit.norm())", "unit = unit.div(unit.norm())"),
        raises=True,
    ),
    Bad(
        """
        hidden = weight.exp()
        first = hidden[:1]
        first.zero_()  # finds TS201
        hidden.sum().backward()
        """,
        raises=True,
    ),
    Good(
        """
        shifted = weight * 2
        shifted += 1
        shifted.sum().backward()
        """,
        because="the backward of a product with a number does not need its output",
    ),
    Good(
        """
        gate = weight.sigmoid()
        gate = gate * 2
        gate.sum().backward()
        """,
        because="the product is a new tensor",
    ),
    Good(
        """
        gate = weight.sigmoid()
        gate.sum().backward()
        with torch.no_grad():
            gate *= 2
        """,
        because="the backward is over",
    ),
]


def find(call: Call, history: History) -> Iterator[Finding]:
    saved = call.values["saved"]
    kept = saved.last(Kind.SAVED)
    write = kept and history.last_write(saved.storages, since=kept)
    if not kept or not write or not write.counted:
        return
    at = write.site or kept.site
    if at is None:
        return
    because = []
    if kept.site and kept.site != at:
        because.append(Because(kept.site, f"saved here for {kept.op}", when="before"))
    if call.site:
        because.append(Because(call.site, "backward needs it here", when="after"))
    who = f"`{write.op}` changes {_the(saved.label)}" if write.op else f"{_the(saved.label)} is changed"
    yield Finding(
        CODE,
        message=f"{who} in place, but {kept.op} still needs its old values for the gradient",
        at=at,
        label=_label(write),
        because=tuple(because),
        help=" ".join(STEP_HELP.split()) if _is_step(write.op) else "",
    )


def _is_step(op: str) -> bool:
    """Whether an optimizer wrote, which has no out-of-place form."""
    return op.endswith(".step")


def _label(write: Moment) -> str:
    if write.site is None:
        return "saved here, then changed by a call that tensafe does not see"
    return "most likely changed in place here" if write.note else "changed in place here"


def fix(finding: Finding) -> Fix | None:
    if _is_step(finding.message.split("`")[1] if "`" in finding.message else ""):
        return None
    return Fix(OutOfPlace(finding.at), safe=False, title="use the out-of-place form")


def _the(label: str) -> str:
    return f"`{label}`" if label else "a tensor"
