"""A graph is kept after its backward, or gone through a second time.

## What it does
Reports the line that made the part of a graph which a second backward meets after the first has freed it:
computed once before the loop, in a constructor, carried over from the last step, or shared by two losses.
Both backwards are named.

Reports, too, the line that keeps the graph of every step, though no backward goes through it again: a total
(`total += loss`), a list of losses or outputs, an average or a buffer that is computed from live tensors.

How many steps were kept only a run can tell; so can it alone follow values through code of other libraries.

## Why it matters
A kept loss is not a number: it holds the graph of its step, and a total holds those of all steps. Memory
grows with every step until it runs out.

The first `backward()` frees what the graph had saved, so the second stops with *Trying to backward through
the graph a second time*. The cure in the message, `retain_graph=True`, mostly makes it worse: the gradient
is that of the old values, memory grows with every step, and after an optimizer step the saved weights have
changed, so that the next error is *modified by an inplace operation*.

## Instead
Keep numbers (`total += loss.item()`) or detached tensors (`losses.append(loss.detach())`).

Compute the shared part again in each step; `detach()` what is carried over (a hidden state, a target) and is
not to be trained through; add two losses up and call `backward()` once.

## Fix safety
There is no automatic fix: whether the part is to be computed again or detached is the author's choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind, Site
from tensafe.findings import Because, Finding, When
from tensafe.rules import Bad, Good

CODE = "TS206"
SINCE = "0.1"
SEVERITY = "error"
AT = (Kind.REFUSED, Kind.RETAINED)
HELP = """compute the shared part in each step, `detach()` what is carried over, or add the losses and
call `backward()` once; `retain_graph=True` keeps the old values and the memory"""
KEEP_NUMBERS = """keep the number or a detached tensor: `total += loss.item()`,
`losses.append(loss.detach())`, an average of `value.detach()`"""

SETUP = """
import torch
encoder = torch.nn.Linear(2, 2)
head = torch.nn.Linear(2, 1)
"""
EXAMPLES = [
    Bad(
        """
        code = encoder(torch.ones(1, 2)).tanh()  # finds TS206
        for _ in range(2):
            loss = head(code).sum()
            loss.backward()
        """,
        raises=True,
    ),
    Bad(
        """
        memory = torch.zeros(1, 2)
        for _ in range(2):
            memory = (encoder(torch.ones(1, 2)) + memory).tanh()  # finds TS206
            head(memory).sum().backward()
        """,
        raises=True,
    ),
    Bad("""
        total = 0
        for _ in range(8):
            loss = (head(encoder(torch.ones(1, 2)).tanh()) - 1).pow(2).sum()
            loss.backward()
            total += loss  # finds TS206
        """),
    Bad("""
        losses = []
        for _ in range(8):
            loss = (head(encoder(torch.ones(1, 2)).tanh()) - 1).pow(2).sum()
            loss.backward()
            losses.append(loss)  # finds TS206
        """),
    Good(
        """
        total = 0
        for _ in range(8):
            loss = (head(encoder(torch.ones(1, 2)).tanh()) - 1).pow(2).sum()
            loss.backward()
            total += loss.item()
        """,
        because="a number has no graph",
    ),
    Good(
        """
        total = 0
        for _ in range(8):
            total += (head(encoder(torch.ones(1, 2)).tanh()) - 1).pow(2).sum()
        total.backward()
        """,
        because="one backward goes through all that was added up",
    ),
    Good(
        """
        memory = torch.zeros(1, 2)
        for _ in range(2):
            memory = (encoder(torch.ones(1, 2)) + memory.detach()).tanh()
            head(memory).sum().backward()
        """,
        because="the carried state is detached",
    ),
    Good(
        """
        loss = head(encoder(torch.ones(1, 2)).tanh()).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        """,
        because="the first backward keeps the graph for the second",
    ),
]


def find(call: Call, history: History) -> Iterator[Finding]:
    if call.kind is Kind.REFUSED and call.note == "second backward" and call.site is not None:
        yield _second(call)
    elif call.kind is Kind.RETAINED and call.site is not None:
        yield _kept(call, call.site)


def _kept(call: Call, site: Site) -> Finding:
    value = call.values["kept"]
    made = value.last(Kind.MADE)
    what = f"`{value.label}`" if value.label else "a value"
    because: tuple[Because, ...] = ()
    if made is not None and made.site is not None and made.site.line != site.line:
        because = (Because(made.site, "the graph is made here", when="before"),)
    graphs = f"the graphs of {call.note} steps alive after their" if call.note else "every graph after its"
    return Finding(
        CODE,
        message=f"{what} keeps {graphs} backward: memory grows with every step",
        at=site,
        label="kept with its graph here",
        because=because,
        help=" ".join(KEEP_NUMBERS.split()),
    )


def _second(call: Call) -> Finding:
    target = call.values["target"]
    made, kept, first = target.last(Kind.MADE), target.last(Kind.KEPT), target.last(Kind.BACKWARD)
    saved = target.last(Kind.SAVED)
    assert call.site is not None
    places = [
        (kept, "adds to a graph that is already gone through"),
        (made, "made here"),
        (saved, "what its backward needs is saved here"),
        (first, "the first backward frees it here"),
    ]
    known = [(moment.site, role) for moment, role in places if moment is not None and moment.site is not None]
    if first is not None and first.site == call.site:
        known[-1] = (call.site, "the first backward frees it here, and the second needs it")
    else:
        known.append((call.site, "the second backward needs it here"))
    at, label = known[0]
    when: When = "" if kept is not None else "after"
    part = f"`{made.op}`, made once," if made is not None and made.site is not None else "a part of the graph"
    return Finding(
        CODE,
        message=f"{part} is gone through by two backwards, and the first frees what the second needs",
        at=at,
        label=label,
        because=tuple(Because(site, role, when=when) for site, role in known[1:] if site != at),
    )
