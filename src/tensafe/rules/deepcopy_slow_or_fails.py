"""`copy.deepcopy` where it cannot work, or where a cheaper copy would do.

## What it does
Reports what inside a deep-copied model, optimizer or tree of tensors has no copy (a lock, a generator, an
open file, a process group, the older `weight_norm` hook), its path in the object, and the line that put it
there.

## Why it matters
`deepcopy` walks into everything that an object holds. One lock in a logger that a layer keeps is enough to
stop it, and the message (*cannot pickle '_thread.lock' object*) names neither the attribute nor the class.
The usual cure, a `try` around the copy, leaves the average or the target network as the live model.

A deep copy allocates fresh memory for every parameter, gradient and buffer, one by one. Where the copy only
runs, or has its parameters replaced at once, all that is thrown away. The source shows the second, as a
notice; whether anybody writes to a copy, and how large it is, only a run can tell.

## Instead
Run the model itself, swap the averaged tensors in and out, or keep one copy and write into it with
`load_state_dict` or `torch._foreach_copy_`.

Leave the part out of the copied state with `__getstate__` and `__setstate__`, keep it outside the module, or
copy only the tensors: `copy.deepcopy(model.state_dict())`. Use `torch.nn.utils.parametrizations.weight_norm`
for the older `torch.nn.utils.weight_norm`.

## Fix safety
There is no automatic fix: what the copy should hold in place of the part is the author's choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, Certainty, History, Kind, Site
from tensafe.findings import Because, Finding, size
from tensafe.rules import Bad, Good

CODE = "TS305"
SINCE = "0.1"
SEVERITY = "error"
AT = (Kind.REFUSED, Kind.COPIED)
HELP = """leave the part out of the copied state (`__getstate__`), keep it outside the module, or copy
`state_dict()` alone"""
KEEP_ONE = """run the model itself, swap the tensors in and out, or keep one copy and write into it with
`load_state_dict`"""

SETUP = """
import copy
import threading
import torch

class Counter:
    def __init__(self):
        self.count = 0
"""
EXAMPLES = [
    Bad(
        """
        class Served(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(2, 2)
                self.counter = Counter()
                self.counter.lock = threading.Lock()  # finds TS305

        average = copy.deepcopy(Served())
        """,
        raises=True,
    ),
    Bad(
        """
        model = torch.nn.Linear(2, 2)
        model.batches = (index for index in range(3))  # finds TS305
        average = copy.deepcopy(model)
        """,
        raises=True,
    ),
    Bad("""
        model = torch.nn.Linear(2048, 2048)
        for epoch in range(5):
            average = copy.deepcopy(model)  # finds TS305 (run)
            average.eval()(torch.ones(1, 2048))
        """),
    Good(
        """
        model = torch.nn.Linear(2048, 2048)
        best = copy.deepcopy(model.state_dict())
        for epoch in range(5):
            with torch.no_grad():
                for name, tensor in model.state_dict().items():
                    best[name].copy_(tensor)
        """,
        because="one copy is kept and written",
    ),
    Good(
        """
        class Served(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(2, 2)
                self.lock = threading.Lock()

            def __getstate__(self):
                return {name: value for name, value in vars(self).items() if name != "lock"}

            def __setstate__(self, state):
                vars(self).update(state, lock=threading.Lock())

        average = copy.deepcopy(Served())
        """,
        because="the lock is left out of the copied state",
    ),
]


def find(call: Call, history: History) -> Iterator[Finding]:
    if call.kind is Kind.COPIED and call.op == "copy.deepcopy" and call.site is not None:
        yield _wasted(call, call.site)
    if call.kind is not Kind.REFUSED or call.site is None:
        return
    if call.note.startswith("no copy of") or (
        call.note == "graph tensor of a hook" and call.certainty is Certainty.OFTEN_MEANT
    ):
        yield _uncopyable(call)


def _uncopyable(call: Call) -> Finding:
    target = call.values["target"]
    kept = target.last(Kind.KEPT)
    assert call.site is not None
    at = kept.site if kept is not None and kept.site is not None else call.site
    what = f"`{target.label}`" if target.label else "a part of the copied object"
    why = call.note.removeprefix("no copy of ")
    reason = {
        "graph tensor of a hook": f"is computed by the hook `{kept.op if kept else ''}` and has a graph",
        "recursion": "is nested too deeply",
    }.get(why, f"is a `{why}`, which has no copy")
    return Finding(
        CODE,
        message=f"{what} {reason}: `copy.deepcopy` fails",
        at=at,
        label="put there here" if at != call.site else "copied here",
        because=(Because(call.site, "copied here", when="after"),) if at.line != call.site.line else (),
    )


def _wasted(call: Call, site: Site) -> Finding:
    message = "`copy.deepcopy` copies every parameter here, and each is replaced at once"
    if call.note:
        nbytes, times = call.note.split(" bytes in ")
        message = f"`copy.deepcopy` copied {size(int(nbytes))} here, {times} tensors that nobody ever wrote"
    return Finding(
        CODE,
        message=message,
        at=site,
        label="copied here",
        help=" ".join(KEEP_ONE.split()),
    )
