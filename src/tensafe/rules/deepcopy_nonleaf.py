"""`copy.deepcopy` meets a tensor with a graph.

## What it does
Reports where a tensor that was computed with gradients is kept inside an object (a module's attribute, a
list, a dict) that is deep-copied later, with its path in the object, the line that made it and the line
that copies.

The source shows objects that are filled and copied in one program; others only a run sees.

## Why it matters
A copy of such a tensor would need a copy of its graph, so PyTorch refuses: *Only Tensors created explicitly
by the user support the deepcopy protocol*. The message names neither the attribute nor the line, and the
object was copied without trouble before the first forward. A cached activation also keeps the graph of its
step in memory. Setting `requires_grad = False` on the parameters does not help, and a `detach()` on the
attribute cuts the gradient of whatever loss uses it: detach only what is not trained through.

## Instead
Return intermediate results instead of keeping them on the module, drop them before the copy
(`model.last_map = None`), keep `.detach()` of what is only looked at, or define `__getstate__` without it.
For a single tensor: `x.detach().clone()`.

## Fix safety
There is no automatic fix: whether something trains through the kept tensor is not in the line.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, Certainty, History, Kind, Site
from tensafe.findings import Because, Finding, When
from tensafe.rules import Bad, Good

CODE = "TS306"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.REFUSED
HELP = """return the value instead of keeping it, drop it before the copy, or keep its `.detach()` when
nothing trains through it"""

SETUP = """
import copy
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
        self.last = None

    def forward(self, x):
        return self.fc(x)
"""
EXAMPLES = [
    Bad(
        """
        class Caching(Net):
            def forward(self, x):
                self.last = self.fc(x)  # finds TS306
                return self.last

        net = Caching()
        net(torch.ones(1, 2))
        average = copy.deepcopy(net)
        """,
        raises=True,
    ),
    Bad(
        """
        out = Net()(torch.ones(1, 2))
        kept = copy.deepcopy(out)  # finds TS306
        """,
        raises=True,
    ),
    Bad(
        """
        history = []
        out = Net()(torch.ones(1, 2))
        history.append(out)  # finds TS306
        kept = copy.deepcopy({"history": history})
        """,
        raises=True,
    ),
    Good(
        """
        net = Net()
        net.last = net(torch.ones(1, 2)).detach()
        average = copy.deepcopy(net)
        """,
        because="what is kept has no graph",
    ),
]
NOTES = ("graph tensor itself", "graph tensor inside", "graph tensor of a hook")


def find(call: Call, history: History) -> Iterator[Finding]:
    target = call.values["target"]
    if call.note not in NOTES or call.site is None:
        return
    if call.note == "graph tensor of a hook" and call.certainty is Certainty.OFTEN_MEANT:
        return  # that one is told by deepcopy-slow-or-fails
    kept, made = target.last(Kind.KEPT), target.last(Kind.MADE)
    at = call.site
    if call.note != "graph tensor itself":
        at = (kept and kept.site) or (made and made.site) or call.site
    places: tuple[tuple[Site | None, str, When], ...] = (
        (made.site if made else None, "made with a graph here", "before"),
        (call.site, "copied here: PyTorch refuses", "after"),
    )
    what = f"`{target.label}`" if target.label else "the copied object"
    holds = "is" if call.note == "graph tensor itself" else "holds" if not target.label else "is"
    yield Finding(
        CODE,
        message=f"{what} {holds} a tensor with a graph, which `copy.deepcopy` cannot copy",
        at=at,
        label="copied here: PyTorch refuses" if at == call.site else "kept with its graph here",
        because=tuple(
            Because(site, role, when=when) for site, role, when in places if site and site.line != at.line
        ),
    )
