"""A live reference kept as if it were a snapshot: the "saved" weights change with every step.

## What it does
Reports `state_dict()`, `list(model.parameters())`, a second `.to(device)` of the same module, or an optimizer
state loaded from another optimizer, when it is used as a copy (restored, compared, held by a second owner)
after the memory it shares was written.

## Why it matters
`state_dict()` and parameter lists return the live tensors, `Module.to` returns the module itself, and
`Optimizer.load_state_dict` keeps the tensors it is given. By the time the "best" weights are restored every
later `optimizer.step()` has overwritten them, and the restore silently changes nothing.

## Instead
`copy.deepcopy(model.state_dict())`, `[p.detach().clone() for p in model.parameters()]`,
`copy.deepcopy(model).to(device)`.

## Fix safety
Unsafe: the copy costs the tensors' memory once more, which the author may not expect.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import Because, Finding, Fix, When, Wrap
from tensafe.rules import Bad, Good

CODE = "TS102"
SINCE = "0.1"
SEVERITY = "error"
AT = (Kind.RESTORED, Kind.COMPARED, Kind.STEPPED)
HELP = """keep a copy: `copy.deepcopy(...)` here, or `[p.detach().clone() for p in model.parameters()]` for a
list of parameters"""

SETUP = """
import copy
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
EXAMPLES = [
    Bad(
        """
        best = model.state_dict()  # finds TS102
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        model.load_state_dict(best)
        """,
        fixed=("= model.state_dict()", "= copy.deepcopy(model.state_dict())"),
    ),
    Bad(
        """
        start = list(model.parameters())  # finds TS102
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        drift = sum((now - then).norm() for now, then in zip(model.parameters(), start))
        """,
        fixed=("= list(model.parameters())", "= copy.deepcopy(list(model.parameters()))"),
    ),
    Good(
        """
        best = model.state_dict()
        model.load_state_dict(best)
        """,
        because="nothing was written in between",
    ),
    Good(
        """
        best = copy.deepcopy(model.state_dict())
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        model.load_state_dict(best)
        """,
        because="the state was copied",
    ),
    Good(
        """
        target = copy.deepcopy(model)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        target.load_state_dict(model.state_dict())
        """,
        because="load_state_dict copies into the other module's own memory",
    ),
    Good(
        """
        state = model.state_dict()
        state["bias"].zero_()
        model.load_state_dict(state)
        """,
        because="the author writes through the live reference on purpose",
    ),
]

_USED = {
    Kind.RESTORED: "restored here, from the memory it is restored into",
    Kind.COMPARED: "compared with itself here",
    Kind.STEPPED: "changed for both owners here",
}
_WAY = {Kind.VIEWED: "the same object under another name", Kind.STEPPED: "stepped from here"}


def find(call: Call, history: History) -> Iterator[Finding]:
    reference = call.values["kept"]
    kept = reference.last(Kind.KEPT)
    write = kept and history.last_write(reference.storages, since=kept)
    if not kept or not kept.site or not write:
        return
    because = []
    for moment in reference.trail:
        if moment.site and moment.kind in _WAY:
            when: When = "before" if moment.kind is Kind.VIEWED else "after"
            because.append(Because(moment.site, _WAY[moment.kind], when=when))
    if write.site:
        because.append(Because(write.site, f"overwritten here by `{write.op}`", when="after"))
    if call.site and (write.site is None or call.site != write.site):
        because.append(Because(call.site, _USED[call.kind], when="after"))
    yield Finding(
        CODE,
        message=f"`{kept.op}` gives the live tensors, not a copy{_what(call)}",
        at=kept.site,
        label=kept.note or "kept here as if it were a copy",
        because=tuple(because),
    )


def fix(finding: Finding) -> Fix | None:
    return Fix(Wrap(finding.at, "copy.deepcopy({})", imports=("copy",)), safe=False, title="keep a deep copy")


def _what(call: Call) -> str:
    if call.kind is Kind.RESTORED:
        return ": restoring it changes nothing"
    if call.kind is Kind.COMPARED:
        return ": the difference is always zero"
    return ": a write by one owner changes the other"
