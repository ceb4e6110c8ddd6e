"""A save writes far more bytes than the tensors in it have.

## What it does
Reports `torch.save`, `pickle` and `copy.deepcopy` of tensors that reach only a part of their storage, and
arrays over the same memory that `numpy.savez` writes once for each name. A run counts the bytes that no saved
tensor reaches, over all tensors of the saved object together. In source, one of several items, pieces or
windows of a tensor is surely a part; a slice of a size that is not known is a notice.

## Why it matters
PyTorch saves and copies whole storages, so that aliases survive. A slice of a large tensor, a row of a batch
or a chunk of a weight takes all of it along: ten rows become a file of gigabytes, and each shard of a model
is as large as the model.

## Instead
Save a copy of the part: `torch.save(batch[0].clone(), path)`, or `tensafe.compact(tree)`. Leave one of two
tied tensors out of an archive and tie them again after loading.

## Fix safety
There is no automatic fix: a copy is no alias of the rest any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import Because, Finding, size
from tensafe.rules import Bad, Good

CODE = "TS304"
SINCE = "0.1"
SEVERITY = "warning"
AT = Kind.SERIALISED
HELP = """save a copy of the part, `.clone()`, or `tensafe.compact(...)`, so that the rest stays behind"""

SETUP = """
import copy
import io
import pickle
import torch
table = torch.zeros(1024, 1024)
"""
EXAMPLES = [
    Bad("""
        torch.save({"first": table[0]}, io.BytesIO())  # finds TS304
        """),
    Bad("""
        row = table[0]
        sent = pickle.dumps(row)  # finds TS304
        """),
    Bad("""
        rows = copy.deepcopy([table[0], table[1]])  # finds TS304
        """),
    Good(
        """
        torch.save({"first": table[0].clone()}, io.BytesIO())
        """,
        because="the copy has a storage of its own size",
    ),
    Good(
        """
        torch.save({"upper": table[:512], "lower": table[512:]}, io.BytesIO())
        """,
        because="together they reach the whole storage, which is written once",
    ),
]


def find(call: Call, history: History) -> Iterator[Finding]:
    saved = call.values["saved"]
    viewed = saved.last(Kind.VIEWED)
    if call.site is None:
        return
    because: tuple[Because, ...] = ()
    if viewed is not None and viewed.site is not None and viewed.site.line != call.site.line:
        because = (Because(viewed.site, "made here", when="before"),)
    yield Finding(
        CODE,
        message=_how_much(call, saved.label),
        at=call.site,
        label="saved here" if call.op != "copy.deepcopy" else "copied here",
        because=because,
    )


def _how_much(call: Call, label: str) -> str:
    """The bytes that a run has counted; source tells none."""
    if not call.note and call.op.startswith("numpy"):
        return f"`{call.op}` writes the tied weights of `{label}` once for each of their names"
    if not call.note:
        what = f"`{label}`" if label else "the tensor"
        return f"`{call.op}` takes the whole storage along, of which {what} is a part"
    words = call.note.split()
    dead, nbytes, times = int(words[0]), int(words[2]), int(words[-1])
    often = f" in {times} calls" if times > 1 else ""
    waste = "are written twice" if call.op.startswith("numpy") else "belong to no tensor in it"
    return f"`{call.op}` takes {size(nbytes)}{often}, of which {size(dead)} {waste}"
