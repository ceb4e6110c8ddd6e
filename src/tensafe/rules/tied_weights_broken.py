"""Tensors that were to be one memory are two: after a copy, a conversion, a load, or under an optimizer.

## What it does
Reports a deep copy or a conversion (`.to()`, `.double()`) after which a flat buffer and the parameters that
were views of it live apart, a table of buffers that a module still writes after a conversion gave it new
ones, a checkpoint with two different values for one tied parameter, and an optimizer that steps parameters
which the model does not have any more. `tensafe check` needs the copy, the load or the optimizer in sight of
the model's class; `tensafe run` sees them wherever they are.

## Why it matters
Nothing raises. The copy's flat buffer is updated and its layers keep their old weights; statistics go into
tensors that are never saved; of two checkpoint entries the last one wins; the optimizer trains what nobody
uses while the model stays as it is.

## Instead
Tie again after the copy or conversion; look buffers up by name (`getattr(self, name)`) instead of keeping
them in a table; make the optimizer after the model is complete, converted and loaded; load untied weights
into an untied model.

## Fix safety
There is no automatic fix: how the tensors are to be tied again is the model's own business.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import Because, Finding, When
from tensafe.rules import Bad, Good

CODE = "TS107"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.UNTIED
HELP = """tie again after copying or converting, look buffers up by name, make the optimizer once the model is
complete"""

SETUP = """
import copy
import torch
from torch import nn


class Flat(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("flat", torch.zeros(6))
        self.tie()

    def tie(self):
        self.weight = nn.Parameter(self.flat[:4].view(2, 2))
        self.bias = nn.Parameter(self.flat[4:])


class Tied(nn.Module):
    def __init__(self, tie=True):
        super().__init__()
        self.emb = nn.Embedding(6, 4)
        self.out = nn.Linear(4, 6, bias=False)
        if tie:
            self.out.weight = self.emb.weight
"""
EXAMPLES = [
    Bad("""
        average = copy.deepcopy(Flat())  # finds TS107
        average.flat.add_(1.0)
        """),
    Bad("""
        trained = Tied(tie=False)
        model = Tied()
        report = model.load_state_dict(trained.state_dict())  # finds TS107
        """),
    Bad("""
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model[1] = nn.Linear(2, 3)  # finds TS107
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        """),
    Good(
        """
        average = copy.deepcopy(Flat())
        average.tie()
        average.flat.add_(1.0)
        kept = copy.deepcopy(Flat())
        """,
        because="the copy is tied again, or never written",
    ),
    Good(
        """
        model = Tied()
        model.load_state_dict(Tied().state_dict())
        other = copy.deepcopy(model)
        optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
        other.out(other.emb(torch.tensor([1]))).sum().backward()
        optimizer.step()
        """,
        because="both entries hold the same values, and deepcopy keeps one parameter under two names",
    ),
]

_MESSAGES = {
    "checkpoint": "the checkpoint has two values for {label}, one parameter here: the last one wins",
    "parted": "this gives {label}, which were one memory, separate memory: they are tied no more",
    "unlinked": "this gives a buffer and the parameters that were views of it separate memory",
    "stale": "this keeps the module's tensors, which `{op}` replaces: writes to them miss the module",
    "replaced": "the optimizer does not know the parameters made here: {label} is not trained",
    "orphans": "the optimizer holds parameters that no module has any more: {label} is not trained",
}
_LABELS = {
    "checkpoint": "loaded here",
    "parted": "the tie is lost here",
    "unlinked": "the tie is lost here",
    "stale": "kept here",
    "replaced": "replaced here",
    "orphans": "made of parameters that are gone",
}
_ROLES = {
    Kind.VIEWED: "tied here",
    Kind.WRITTEN: "written here, for one of them only",
    Kind.COPIED: "replaced by new tensors here",
    Kind.KEPT: "the optimizer was made here",
    Kind.STEPPED: "stepped here",
}

_WHEN: dict[tuple[str, Kind], When] = {
    ("parted", Kind.VIEWED): "before",
    ("parted", Kind.WRITTEN): "after",
    ("stale", Kind.COPIED): "after",
    ("stale", Kind.WRITTEN): "after",
    ("replaced", Kind.KEPT): "before",
    ("replaced", Kind.STEPPED): "after",
    ("orphans", Kind.STEPPED): "after",
}


def find(call: Call, history: History) -> Iterator[Finding]:
    tied = call.values["tied"]
    if call.site is None or call.note not in _MESSAGES:
        return
    yield Finding(
        CODE,
        message=_MESSAGES[call.note].format(label=tied.label, op=call.op),
        at=call.site,
        label=_LABELS[call.note],
        because=tuple(
            Because(moment.site, _ROLES[moment.kind], when=_WHEN.get((call.note, moment.kind), ""))
            for moment in tied.trail
            if moment.site is not None and moment.site != call.site
        ),
    )
