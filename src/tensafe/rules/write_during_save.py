"""A tensor is written while a save in another thread still has to read it.

## What it does
Reports a state that is handed to another thread to be saved and is written before that thread has saved it,
and a `torch.save` during which another thread writes one of its tensors (the last one by `tensafe run` only).

## Why it matters
`state_dict()` gives the live tensors, so a save in the background reads whatever the training loop has made
of them meanwhile: a checkpoint of a later step, or of two steps at once, without any error.

## Instead
Copy before the hand-over: `copy.deepcopy(model.state_dict())`, or one `clone()` for each tensor; wait for the
save before the next step. `torch.distributed.checkpoint.async_save` makes that copy itself, unless it is
given a stager that does not.

## Fix safety
There is no automatic fix: a copy costs the tensors' memory once more, waiting costs time.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import Because, Finding
from tensafe.rules import Bad, Good

CODE = "TS109"
SINCE = "0.1"
SEVERITY = "error"
AT = Kind.WRITTEN
HELP = (
    """hand over a copy (`copy.deepcopy(model.state_dict())`), or wait for the save before the next write"""
)

SETUP = """
import copy
import io
import threading
from concurrent.futures import ThreadPoolExecutor
import torch

pool = ThreadPoolExecutor(1)
ready = threading.Event()
model = torch.nn.Linear(2, 1)


def save(state):
    ready.wait()
    torch.save(state, io.BytesIO())


def train():
    with torch.no_grad():
        model.weight.add_(1.0)
"""
EXAMPLES = [
    Bad("""
        job = pool.submit(save, model.state_dict())  # finds TS109
        train()
        ready.set()
        job.result()
        """),
    Bad("""
        thread = threading.Thread(target=save, args=(model.state_dict(),))
        thread.start()  # finds TS109
        train()
        ready.set()
        thread.join()
        """),
    Good(
        """
        job = pool.submit(save, copy.deepcopy(model.state_dict()))
        train()
        ready.set()
        job.result()
        """,
        because="the state was copied before it was handed over",
    ),
    Good(
        """
        ready.set()
        job = pool.submit(save, model.state_dict())
        job.result()
        train()
        """,
        because="the save is over before the next write",
    ),
]


def find(call: Call, history: History) -> Iterator[Finding]:
    saving = call.values.get("saving")
    if saving is None or call.site is None:
        return
    written, saved = saving.last(Kind.WRITTEN), saving.last(Kind.SERIALISED)
    because = []
    if written and written.site and written.site != call.site:
        because.append(Because(written.site, f"written meanwhile by `{written.op}`", when="after"))
    if saved and saved.site and saved.site != call.site:
        because.append(Because(saved.site, "saved here, in another thread", when="after"))
    given = call.note == "given"
    yield Finding(
        CODE,
        message="the live tensors are handed to a thread that saves them, and are written before it has"
        if given
        else f"`{call.op}` writes a tensor in another thread while `torch.save` reads it",
        at=call.site,
        label="handed over without a copy" if given else "saved here",
        because=tuple(because),
    )
