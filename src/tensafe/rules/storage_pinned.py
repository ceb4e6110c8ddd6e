"""A small view keeps a large storage alive.

## What it does
Reports the line that made views, each a small part of a large tensor, which are kept in a list, a dict or an
attribute while everything else of the large tensor is gone. A run counts the bytes that nobody can reach any
more. Source seldom tells sizes: what is surely a small part, or every k-th element, is a warning there, other
parts at one fixed place, `hidden[:, 0]`, are notices.

## Why it matters
A view holds the whole storage that it looks into. One row of an activation kept for a plot keeps the
activation; a list of such rows keeps one for every step, and memory grows though the rows are small.

## Instead
Keep a copy of the part: `logits[-1].clone()`, or `tensafe.compact(tree)` for a whole tree of tensors.

## Fix safety
There is no automatic fix: a copy no longer follows writes into the large tensor.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import Because, Finding, size
from tensafe.rules import Bad, Good

CODE = "TS303"
SINCE = "0.1"
SEVERITY = "warning"
AT = Kind.PINNED
HELP = """keep a copy of the part, `.clone()`, so that the large tensor can be freed"""

SETUP = """
import torch

def scores(rows):
    return torch.zeros(rows, 1024)
"""
EXAMPLES = [
    Bad("""
        def last(rows):
            table = scores(rows)
            return table[-1]  # finds TS303

        kept = [last(8192) for _ in range(3)]
        """),
    Good(
        """
        kept = [scores(8192)[-1].clone() for _ in range(3)]
        """,
        because="the copies let the tables go",
    ),
    Good(
        """
        table = scores(8192)
        kept = [table[row] for row in range(3)]
        """,
        because="the table itself is still there",
    ),
]


def find(call: Call, history: History) -> Iterator[Finding]:
    view = call.values["view"]
    viewed, kept = view.last(Kind.VIEWED), view.last(Kind.KEPT)
    if viewed is None or viewed.site is None:
        return
    because: tuple[Because, ...] = ()
    if kept is not None and kept.site is not None and kept.site.line != viewed.site.line:
        because = (Because(kept.site, "kept here", when="after"),)
    yield Finding(
        CODE,
        message=_how_much(call.note),
        at=viewed.site,
        label="viewed here",
        because=because,
    )


def _how_much(note: str) -> str:
    """The bytes that a run has counted; source tells none."""
    if not note:
        return "each of these views keeps the whole tensor that it is a part of alive"
    words = note.split()
    count, reached, dead = int(words[0]), int(words[3]), int(words[-1])
    views, keep = ("a view", "keeps") if count == 1 else (f"{count} views", "keep")
    return f"{views} of {size(reached)} {keep} {size(dead)} alive that nobody can reach"
