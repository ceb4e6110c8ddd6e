"""The graph is cut on the way to the loss, and parameters get no gradient.

## What it does
Reports the line that takes a value out of its graph (`torch.tensor(list_of_losses)`, `.detach()`, `.data`,
`.item()`, `.numpy()`, a write through `.data`, a custom Function that changes its input without `mark_dirty`,
reentrant checkpointing of an input without gradient) when the parameters behind it got no gradient.

## Why it matters
`optimizer.step()` skips parameters whose gradient is None, so part of the model silently never trains. The
cures that forums hand out, `requires_grad=True` on the rebuilt tensor or `loss.requires_grad = True`, only
turn the loud error (*element 0 of tensors does not require grad*) into this silent one.

## Instead
Keep the history: `torch.stack(losses)` for `torch.tensor(losses)`, a torch operation for the NumPy one,
`torch.func.functional_call` for an update through `.data`, `checkpoint(..., use_reentrant=False)`, and
`.detach()` only on what must not train.

## Fix safety
Unsafe: gradients flow where none flowed before, which is the purpose, and training changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, Certainty, History, Kind
from tensafe.findings import Because, CallInstead, Finding, Fix, SetKeyword
from tensafe.rules import Bad, Good

CODE = "TS205"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.STARVED
HELP = """keep the history: `torch.stack(values)` for `torch.tensor(values)`, a torch operation for `.item()`
or NumPy, `use_reentrant=False` for checkpoint; `requires_grad=True` on the rebuilt tensor only hides the
cut"""

SETUP = """
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
EXAMPLES = [
    Bad(
        """
        losses = [model(torch.ones(1, 2)).sum() for _ in range(3)]
        loss = torch.tensor(losses, requires_grad=True).mean()  # finds TS205
        loss.backward()
        optimizer.step()
        """,
        fixed=("torch.tensor(losses, requires_grad=True)", "torch.stack(losses)"),
    ),
    Bad("""
        class AddRow(torch.autograd.Function):
            @staticmethod
            def forward(ctx, table, row):
                table[0] += row  # finds TS205
                return table

            @staticmethod
            def backward(ctx, grad):
                return grad, grad[0]

        row = torch.ones(1, requires_grad=True)
        hidden = model(torch.ones(3, 2))
        AddRow.apply(hidden, row)
        hidden.sum().backward()
        """),
    Good(
        """
        losses = [model(torch.ones(1, 2)).sum() for _ in range(3)]
        loss = torch.stack(losses).mean()
        loss.backward()
        optimizer.step()
        """,
        because="stack keeps the history",
    ),
    Good(
        """
        total = 0.0
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(torch.ones(1, 2)).sum()
            loss.backward()
            optimizer.step()
            total += loss.item()
        """,
        because="item() only feeds the log",
    ),
    Good(
        """
        teacher = torch.nn.Linear(2, 1)
        target = teacher(torch.ones(1, 2)).detach()
        loss = (model(torch.ones(1, 2)) - target).pow(2).sum()
        loss.backward()
        optimizer.step()
        """,
        because="nobody trains the teacher",
    ),
]


def find(call: Call, history: History) -> Iterator[Finding]:
    value, idle = call.values["cut"], call.values["parameters"]
    cut = value.last(Kind.CUT)
    if not cut or not cut.site:
        return
    behind = f": {idle.label} got no gradient" if idle.label else ""
    because = (Because(call.site, _noticed(call.certainty), when="after"),) if call.site else ()
    yield Finding(
        CODE,
        message=f"`{cut.op}` takes the value out of its graph{behind}",
        at=cut.site,
        label=cut.note or "the graph ends here",
        because=because,
    )


def fix(finding: Finding) -> Fix | None:
    if "`torch.tensor`" in finding.message:
        return Fix(CallInstead(finding.at, "torch.stack"), safe=False, title="stack the tensors")
    if "`torch.utils.checkpoint.checkpoint`" in finding.message:
        return Fix(SetKeyword(finding.at, "use_reentrant", "False"), safe=False, title="use_reentrant=False")
    return None


def _noticed(certainty: Certainty) -> str:
    return (
        "backward reaches the same value by another way here"
        if certainty is Certainty.OFTEN_MEANT
        else "no gradient arrives here"
    )
