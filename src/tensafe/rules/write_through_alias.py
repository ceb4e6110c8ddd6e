"""A write through one name that changes a tensor which another name still reads.

## What it does
Reports an in-place write through an alias where both names are read afterwards: through a `.to()`,
`.float()`, `.contiguous()`, `flatten()` or `as_tensor()` that had nothing to copy, a `detach()`, a second
name, an argument that the caller goes on to use, an argument's default value, an item of a dataset, and
in-place layers that overwrite a skip connection, a collected feature or what a forward hook kept.
`tensafe check` follows the calls of the project's own functions; what another library writes, and whether a
conversion copies where no type is in sight, only `tensafe run` sees.

## Why it matters
Nothing raises, and the result depends on a type, a device or a memory layout: `x.float()` copies a double and
returns a float as it is. `detach()` and `.data` share memory; they cut the graph, they do not protect the
original. Data drifts from call to call, labels and inputs become one tensor, features hold what the next
layer made of them.

## Instead
Write the out-of-place operation (`sub` for `sub_`), or take a `clone()` where the second name is made; make
a default in the body (`if state is None: state = torch.zeros(3)`); give layers `inplace=False` where their
input is read again.

## Fix safety
There is no automatic fix: which of the two names should keep the old values is for the author to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind, Moment
from tensafe.findings import Because, Finding, When
from tensafe.rules import Bad, Good

CODE = "TS101"
SINCE = "0.1"
SEVERITY = "error"
AT = (Kind.WRITTEN, Kind.EXPORTED)
HELP = """use the out-of-place operation, or make the second name by `.clone()` (`detach()` and `.data` share
memory)"""

SETUP = """
import numpy as np
import torch
from torch import nn
"""
EXAMPLES = [
    Bad("""
        def labels_of(tokens):
            labels = tokens
            labels.masked_fill_(labels == 0, -100)  # finds TS101
            return {"tokens": tokens, "labels": labels}

        batch = labels_of(torch.tensor([3, 0]))
        """),
    Bad("""
        def bright(image):
            flat = image.flatten()
            flat[flat < 2] = 0  # finds TS101
            return int(flat.count_nonzero())

        image = torch.arange(4.0).view(2, 2)
        count = bright(image)
        total = image.sum()
        """),
    Bad("""
        def integrate(steps, state=torch.zeros(2)):
            for step in steps:
                state.mul_(0.5).add_(step)  # finds TS101
            return state.clone()

        first, second = integrate(torch.ones(3, 2)), integrate(torch.ones(3, 2))
        """),
    Bad("""
        class Unit(nn.Module):
            def __init__(self):
                super().__init__()
                self.act = nn.ReLU(inplace=True)
                self.fc = nn.Linear(2, 2)

            def forward(self, x):
                return self.fc(self.act(x)) + x  # finds TS101

        y = Unit()(torch.randn(1, 2))
        """),
    Bad("""
        kept = {}
        net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))

        def keep(module, args, output):
            kept["features"] = output.detach()  # finds TS101

        handle = net[0].register_forward_hook(keep)
        with torch.no_grad():
            y = net(torch.randn(1, 2))
        """),
    Bad("""
        class Boxes:
            def __init__(self, data):
                self.tensor = torch.as_tensor(data, dtype=torch.float32)
                self.tensor[:, 0].add_(self.tensor[:, 1] / 2)  # finds TS101

        data = np.ones((1, 2), dtype=np.float32)
        for epoch in range(2):
            boxes = Boxes(data)
        """),
    Good(
        """
        def bright(image):
            flat = image.flatten()
            flat = torch.where(flat < 2, 0.0, flat)
            return int(flat.count_nonzero())

        def clip_(boxes):
            boxes[:, 0].clamp_(0, 1)
            return boxes

        def grow(weights, noise):
            flat = weights.view(-1)
            flat.add_(noise)
            return weights

        image = torch.arange(4.0).view(2, 2)
        count = bright(image)
        clipped = clip_(image)
        grown = grow(image, 0.5)
        total = image.sum()
        """,
        because="a new tensor is made, or the write is what the function is for",
    ),
    Good(
        """
        class Unit(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
                self.act = nn.ReLU(inplace=True)

            def forward(self, x):
                out = self.fc(x)
                out = self.act(out)
                return out + x

        y = Unit()(torch.randn(1, 2))
        """,
        because="the layer overwrites a tensor that nobody reads any more",
    ),
]

_MESSAGES = {
    "default": "`{op}` writes to the default of an argument, which is made once and kept from call to call",
    "names": "`{op}` also changes `{label}`, which shares this memory and is read again",
    "kept": "`{label}` shares memory with what `{op}` writes: it does not keep the old values",
    "dataset": "`{op}` changes `{label}`, of which this item is a view: once more at every fetch",
    "argument": "`{op}` also changes `{label}` of the caller, who goes on to read it",
    "layer": "an in-place layer overwrites `{label}`, which is read afterwards: `{op}`",
    "collected": "`{label}` collects this tensor without a copy, and an in-place layer overwrites it: `{op}`",
    "hook": "the hook keeps the output without a copy, and the next layer overwrites it in place: `{op}`",
    "converted": "`{op}` writes into data that was converted without a copy and is converted again later",
}
_LABELS = {
    "kept": "shares the memory",
    "collected": "kept without a copy",
    "hook": "kept without a copy",
    "layer": "overwritten here",
}


def find(call: Call, history: History) -> Iterator[Finding]:
    alias = call.values.get("alias", call.values.get("memory"))
    if alias is None or call.site is None or call.note not in _MESSAGES:
        return
    yield Finding(
        CODE,
        message=_MESSAGES[call.note].format(op=call.op, label=alias.label),
        at=call.site,
        label=_LABELS.get(call.note, "written here"),
        because=tuple(
            Because(moment.site, _role(moment), when=_when(moment))
            for moment in alias.trail
            if moment.site is not None and moment.site != call.site
        ),
    )


def _role(moment: Moment) -> str:
    if moment.kind is Kind.VIEWED:
        return f"`{moment.op}` copied nothing here" if moment.op else "the same memory under another name"
    if moment.kind is Kind.COPIED:
        return "passed here" if moment.note == "passed" else "read here as if it were unchanged"
    roles = {
        Kind.MADE: "made here",
        Kind.WRITTEN: "overwritten here",
        Kind.EXPORTED: f"`{moment.op}` copied nothing here, nor will it later",
    }
    return roles.get(moment.kind, "here")


def _when(moment: Moment) -> When:
    """A later read, and the write that meets what was kept, come after."""
    later = moment.kind is Kind.WRITTEN or (moment.kind is Kind.COPIED and moment.note != "passed")
    return "after" if later else "before"
