"""A write into memory that overlaps itself, or that the same operation also reads.

## What it does
Reports a write into an expanded tensor, whose rows are one and the same memory (also by `load_state_dict`
or an optimizer step, when a buffer or parameter was made by `expand`), and an operation that writes and
reads overlapping parts of one tensor, such as `x[1:] /= x[:-1]`.

## Why it matters
`expand` makes one row look like many: there is no memory in which each could get a value of its own.
PyTorch refuses some such writes (*more than one element of the written-to tensor refers to a single memory
location*, *some elements of the input tensor and the written-to tensor refer to a single memory location*),
at the write and not where the memory was made to overlap. Others go through, and the result depends on the
order of the writes.

## Instead
Give the rows memory of their own where the tensor is made: `.expand(n, d).clone()` or `.repeat(n, 1)`.
Write the out-of-place form: `x[1:] = x[1:] / x[:-1]`, or read from a `clone()`.

## Fix safety
Unsafe: a `clone()` takes the memory that `expand` saved, and later writes to the original no longer show in
it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind, Value
from tensafe.findings import Because, Finding, Fix, When, Wrap
from tensafe.rules import Bad, Good

CODE = "TS104"
SINCE = "0.1"
SEVERITY = "error"
AT = (Kind.REFUSED, Kind.OVERLAPPED)
HELP = """give the rows memory of their own where the tensor is made (`.clone()`, `.repeat()`), or use the
out-of-place form"""

SETUP = """
import torch
row = torch.zeros(1, 3)
"""
EXAMPLES = [
    Bad(
        """
        rows = row.expand(2, 3)
        rows += 1  # finds TS104
        """,
        fixed=("row.expand(2, 3)", "row.expand(2, 3).clone()"),
        raises=True,
    ),
    Bad(
        """
        prices = torch.tensor([10.0, 11.0, 12.0])
        prices[1:] /= prices[:-1]  # finds TS104
        """,
        fixed=("prices[:-1]", "prices[:-1].clone()"),
        raises=True,
    ),
    Bad(
        """
        slots = torch.nn.Parameter(row.expand(2, 3))  # finds TS104
        optimizer = torch.optim.SGD([slots], lr=0.1)
        slots.sum().backward()
        optimizer.step()
        """,
        fixed=("row.expand(2, 3)", "row.expand(2, 3).clone()"),
        raises=True,
    ),
    Bad("""
        history = torch.arange(12.0).view(3, 4)
        history[:, 1:] = history[:, :-1]  # finds TS104
        """),
    Bad("""
        signal = torch.arange(10.0)
        windows = signal.unfold(0, 4, 2)
        windows -= windows.mean(dim=1, keepdim=True)  # finds TS104
        """),
    Good(
        """
        history = torch.arange(12.0).view(3, 4)
        history[:, 1:] = history[:, :-1].clone()
        history[:, 2:] = history[:, :2]
        history[:, 0] += 1
        signal = torch.arange(10.0)
        signal.unfold(0, 4, 2).fill_(1.0)
        """,
        because="the source is a copy or lies apart, and one value for all has no order",
    ),
    Good(
        """
        rows = row.expand(2, 3).clone()
        rows += 1
        prices = torch.tensor([10.0, 11.0, 12.0])
        prices[1:] = prices[1:] / prices[:-1]
        """,
        because="every row has memory of its own, and the quotient is a new tensor",
    ),
]
LIBRARY = ("Optimizer.step", "Module.load_state_dict")


def find(call: Call, history: History) -> Iterator[Finding]:
    if call.kind is Kind.OVERLAPPED and call.site is not None:
        yield _silent(call)
    if call.kind is Kind.REFUSED and call.site is not None:
        if call.note == "overlaps itself":
            yield _itself(call)
        elif call.note == "overlaps its input":
            yield _input(call)


def _silent(call: Call) -> Finding:
    """What PyTorch lets through: the values depend on the order in which the elements are written."""
    assert call.site is not None
    target = call.values["target"]
    made = [
        Because(m.site, f"several elements get one place here, by `{m.op}`", when="before")
        for m in target.trail
        if m.site
    ]
    if call.note == "input":
        message = (
            f"`{call.op}` reads the memory that it writes, shifted: what it reads is already overwritten"
        )
        label = "written and read here"
    else:
        message = f"`{call.op}` writes to a tensor, several elements of which are one place in memory"
        label = "each place is written several times here"
    return Finding(CODE, message=message, at=call.site, label=label, because=tuple(made))


def _itself(call: Call) -> Finding:
    target = call.values["target"]
    assert call.site is not None
    made = [
        (
            moment.site,
            "several elements get one place here" if moment.kind is Kind.VIEWED else "held from here",
        )
        for moment in target.trail
        if moment.site is not None
    ]
    writes = (
        call.site,
        f"written by `{call.op}` here: PyTorch refuses" if call.op else "written here: PyTorch refuses",
    )
    places = [*made, writes] if call.op in LIBRARY else [writes, *made]
    at, label = places[0]
    when: When = "after" if call.op in LIBRARY else "before"
    what = f"`{target.label}`" if target.label else "a tensor"
    return Finding(
        CODE,
        message=f"{_by(call.op)} writes to {what}, several elements of which are one place in memory",
        at=at,
        label=label,
        because=tuple(Because(site, role, when=when) for site, role in places[1:] if site.line != at.line),
        fix=_own_memory(target),
    )


def _by(op: str) -> str:
    return f"`{op}`" if op else "this line"


def _read_a_copy(call: Call) -> Fix | None:
    operand = call.values.get("operand")
    read = operand.last(Kind.MADE) if operand is not None else None
    if read is None or read.site is None:
        return None
    return Fix(Wrap(read.site, "{}.clone()"), safe=False, title="read from a copy")


def _own_memory(target: Value) -> Fix | None:
    """A copy where a call was seen to make the overlapping view."""
    made = target.last(Kind.VIEWED)
    if made is None or made.site is None or not made.op.startswith("Tensor."):
        return None
    return Fix(Wrap(made.site, "{}.clone()"), safe=False, title="give every element memory of its own")


def _input(call: Call) -> Finding:
    target = call.values["target"]
    assert call.site is not None
    what = f"`{target.label}`" if target.label else "memory"
    return Finding(
        CODE,
        message=f"{_by(call.op)} writes to {what} and reads overlapping memory in the same operation",
        at=call.site,
        label="written and read here: PyTorch refuses",
        fix=_read_a_copy(call),
    )
