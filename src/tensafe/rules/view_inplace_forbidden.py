"""An in-place write to a view that autograd does not let be written.

## What it does
Reports the write that PyTorch refuses, and the call that made the view: one of several views that one call
returned (`unbind`, `split`, `chunk`, iteration over a tensor), the output of a custom `autograd.Function`,
the output of a module with a full backward hook, a view made under `no_grad` or `inference_mode`,
`detach_()` on a view.

The source shows views of values that certainly require grad; what a caller hands in, only a run can tell.

## Why it matters
A write to a view must change the gradient of the tensor behind it. For these views autograd cannot work
that out, or it would go past the author's own backward, and it stops far from the call that made the view.
The usual cures make it worse: `.data` or `detach()` let the write through and leave the old gradient
formula over the new values, silently.

## Instead
Write the out-of-place form (`plane = plane * scale`), write to a `clone()`, index the tensor (`x[i] *=
scale`) where its rows are meant, or switch off `inplace=True` on the layer that follows a hooked module.
Make a view and write to it in the same mode, both inside `no_grad` or both outside.

## Fix safety
Unsafe: after `plane = plane * scale` the tensor that the view looks into keeps its old values.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind, Value
from tensafe.findings import Because, Finding, Fix, OutOfPlace
from tensafe.rules import Bad, Good

CODE = "TS204"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.REFUSED
HELP = """use the out-of-place form, write to a `clone()`, or index the whole tensor; `.data` and
`detach()` let the write through with a wrong gradient"""

SETUP = """
import torch
weight = torch.ones(3, 4, requires_grad=True)
"""
EXAMPLES = [
    Bad(
        """
        image = weight * 2
        for row in image:
            row *= 0.5  # finds TS204
        """,
        raises=True,
    ),
    Bad(
        """
        shift, scale = (weight * 2).chunk(2, dim=1)
        scale.sigmoid_()  # finds TS204
        total = scale.sum() + shift.sum()
        """,
        fixed=("scale.sigmoid_()", "scale = scale.sigmoid()"),
        raises=True,
    ),
    Bad(
        """
        layer = torch.nn.Linear(4, 2)
        layer.register_full_backward_hook(lambda module, before, after: None)
        torch.nn.functional.relu(layer(weight), inplace=True)  # finds TS204
        """,
        raises=True,
    ),
    Bad(
        """
        image = weight * 2
        with torch.no_grad():
            row = image[0]
        row.mul_(2)  # finds TS204
        total = row.sum()
        """,
        fixed=("row.mul_(2)", "row = row.mul(2)"),
        raises=True,
    ),
    Good(
        """
        image = weight * 2
        for i in range(3):
            image[i] *= 0.5
        image.sum().backward()
        """,
        because="each row is a view of its own",
    ),
    Good(
        """
        with torch.no_grad():
            for row in weight * 2:
                row *= 0.5
        """,
        because="nothing is recorded",
    ),
]
WHAT = {
    "one of several views": "one of several views that one call returned together",
    "view of a custom Function": "a view that a custom Function returned",
    "view of a hooked module": "a view that a full backward hook made of the module's output",
    "view made under no_grad": "a view that was made under `no_grad`",
    "view made under inference_mode": "a tensor that was made under `inference_mode`",
    "view detached in place": "a view",
}
MADE = {
    "one of several views": "made here, together with others",
    "view of a custom Function": "the Function is applied here",
    "view of a hooked module": "the hook is put on here",
    "view made under no_grad": "the view is made here",
    "view made under inference_mode": "made here",
    "view detached in place": "the view is made here",
}


def find(call: Call, history: History) -> Iterator[Finding]:
    target = call.values["target"]
    if call.note not in WHAT or call.site is None:
        return
    changed = target.last(Kind.WRITTEN)
    because = [
        Because(moment.site, MADE[call.note], when="before")
        for moment in target.trail
        if moment.kind is Kind.VIEWED and moment.site and moment.site != call.site
    ]
    if changed is not None and changed.site is not None and changed.site != call.site:
        yield Finding(
            CODE,
            message=f"{_by(changed.op)} writes to the base of {_named(target)}{WHAT[call.note]}, used later",
            at=changed.site,
            label="the base is written in place here",
            because=(*because, Because(call.site, "the view is used here: PyTorch refuses", when="after")),
        )
        return
    yield Finding(
        CODE,
        message=f"{_by(call.op)} writes to {_named(target)}{WHAT[call.note]}: PyTorch refuses",
        at=call.site,
        label="written in place here",
        because=tuple(because),
    )


def fix(finding: Finding) -> Fix | None:
    if finding.label != "written in place here":
        return None
    return Fix(OutOfPlace(finding.at), safe=False, title="use the out-of-place form")


def _named(target: Value) -> str:
    return f"`{target.label}`, " if target.label else ""


def _by(op: str) -> str:
    return f"`{op}`" if op else "this line"
