"""Records made by hand, with the source files that they speak of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from report.html.samples import HOSTILE_NAMES
from tensafe.findings import (
    Because,
    CopyLine,
    Finding,
    Fix,
    Memory,
    NotChecked,
    OutOfPlace,
    Reached,
    Record,
    Severity,
    Site,
)
from tensafe.report.sources import Sources
from tensafe.report.text import Change, View

SOURCE = """\
import torch

def forward(x, bias):
    out = torch.sigmoid(x)

    first = out[:2]
    first += bias
    return out

weight = torch.ones(8, 4, requires_grad=True)
loss = forward(weight, 1.0).sum()
loss.backward()
"""
HELPERS = "def helper(batch):\n    return batch[:1]\n"
EVIL = HOSTILE_NAMES[0]


def saved_modified(path: str) -> Finding:
    """Saved, written through a view, needed; 128 bytes of which the write reached 32."""
    write = Site(path, 7, 5, 7, 18, "forward")
    return Finding(
        "TS201",
        "`Tensor.add_` changes a tensor in place, but SigmoidBackward0 still needs its old values",
        write,
        (
            Because(Site(path, 4, 11, 4, 27, "forward"), "saved here for SigmoidBackward0", when="before"),
            Because(Site(path, 12, 1, 12, 16), "backward needs it here", when="after"),
        ),
        label="changed in place here",
        name="saved-tensor-modified",
        severity=Severity.ERROR,
        help="use the out-of-place form here (`x = x + y` for `x += y`)",
        fix=Fix(OutOfPlace(write), safe=False, title="use the out-of-place form"),
        count=3,
        memory=(
            Memory(
                128,
                (
                    Reached("saved for SigmoidBackward0", 0, (8, 4), (16, 4), 4, "float32"),
                    Reached("written by `Tensor.add_`", 32, (2, 4), (16, 4), 4, "float32", "first"),
                ),
            ),
        ),
    )


def record(folder: Path) -> Record:
    """Two errors, a warning and two notices in two files; copies, and something that was not checked."""
    train, helpers = folder / "train.py", folder / "helpers.py"
    train.write_text(SOURCE, encoding="utf-8")
    helpers.write_text(HELPERS, encoding="utf-8")
    kept = Finding(
        "TS303",
        "a view of 4 bytes keeps 4 KiB alive",
        Site(str(helpers), 2, 12, 2, 21, "helper"),
        label="viewed here",
        name="storage-pinned",
        severity=Severity.WARNING,
        rank=1,
        memory=(Memory(4096, (Reached("kept", 4092, (1,), (4,), 4, "float32"),)),),
    )
    cut = Finding("TS205", "the graph ends", Site(str(train), 11, 8, 11, 33), name="graph-cut")
    lost = Finding(
        "TS106",
        "a lost write",
        Site(str(train), 6, 5, 6, 20, "forward"),
        (Because(Site(str(helpers), 1, 1, 1, 18), "called from here"),),
        name="lost-write",
        severity=Severity.ERROR,
        processes=("DataLoader worker 0", "rank 1"),
    )
    found = (
        replace(cut, severity=Severity.NOTICE),
        saved_modified(str(train)),
        kept,
        replace(cut, severity=Severity.NOTICE, message="the graph ends once more"),
        lost,
    )
    copies = (
        CopyLine(Site(str(train), 6, 13, 6, 20), "Tensor.clone", 2, 2048, False, "no"),
        CopyLine(Site(str(helpers), 2, 12, 2, 21), "Tensor.reshape", 5, 4096, True, "again"),
    )
    unseen = (NotChecked("torch.compile", "what runs inside is not seen"),)
    facts: dict[str, float | int | str] = {"program": str(train), "seconds": 1.5, "exit_status": 0}
    return Record("run", found, unseen, facts, "0.1.0", copies)


def view(folder: Path, written: Record | None = None, notices: bool = False) -> View:
    """From the folder; each fix puts `= first +` into its line."""
    changes = {}
    for finding in written.findings if written else ():
        if finding.fix:
            site = finding.fix.action.site
            changes[finding] = [Change(Site(site.path, site.line, 11, site.line, 13), "= first +")]
    return View(str(folder), Sources(), notices=notices, changes=changes)


def many(folder: Path, count: int) -> Record:
    """So many findings of five rules at lines of ten files, with everything that a finding can have."""
    block = "\n".join(
        ["hidden = torch.sigmoid(layer(x))", "hidden[mask] += 1", "hidden.sum().backward()", ""]
    )
    files = [folder / f"block_{number}.py" for number in range(10)]
    for path in files:
        path.write_text(block * (count // 10 + 1), encoding="utf-8")
    return Record("run", tuple(_numbered(number, files) for number in range(count)))


def _numbered(number: int, files: list[Path]) -> Finding:
    path, line = str(files[number % 10]), 3 * (number // 10) + 1
    extents = [
        Reached("saved", 0, (64, 256), (1024, 4), 4, "float32", "hidden"),
        Reached("written by `Tensor.add_`", 1024 * (number % 40), (10, 256), (1024, 4), 4, "float32"),
    ]
    return Finding(
        f"TS10{number % 5}",
        f"`Tensor.__setitem__` changes `hidden_{number}` in place, but SigmoidBackward0 needs its old values",
        Site(path, line + 1, 1, line + 1, 18, "Block.forward"),
        (
            Because(Site(path, line, 10, line, 33), "saved here for SigmoidBackward0", when="before"),
            Because(Site(path, line + 2, 1, line + 2, 24), "backward needs it here", when="after"),
        ),
        "changed in place here",
        f"rule-{number % 5}",
        list(Severity)[number % 3],
        "use the out-of-place form here (`x = x + y` for `x += y`), or write to a `clone()`",
        memory=(Memory(65_536, tuple(extents)),),
    )


def hostile(folder: Path) -> Record:
    """Names, messages, source, paths and figures that try to leave their place."""
    path = folder / EVIL.replace("/", "")
    path.write_text(f"x = 1  # {EVIL}\n'''{EVIL}'''\n<!-- <script x\n", encoding="utf-8")
    whole = Site(str(path), 1, 1, 2, 20, EVIL)
    reached = Reached(EVIL, -5, (3, 2**40), (-8, 0), 4, EVIL, EVIL)
    found = [
        Finding(
            EVIL,
            message,
            whole if number % 2 else Site(f"/nowhere/{message}", 3),
            (
                Because(Site(str(path), 1, 3, 1, 30, EVIL), EVIL, EVIL, "before"),
                Because(Site(f"/nowhere/{EVIL}", 1, 1, 1, 9), message, when="after"),
            ),
            EVIL,
            message,
            list(Severity)[number % 3],
            EVIL,
            Fix(OutOfPlace(whole), True, EVIL),
            rank=number,
            processes=(EVIL, message),
            memory=(Memory(4096, (reached, replace(reached, role=message)), EVIL),),
        )
        for number, message in enumerate(HOSTILE_NAMES)
    ]
    copies = (CopyLine(whole, EVIL, 1, 10**30, True, EVIL),)
    return Record("run", tuple(found), (NotChecked(EVIL, EVIL),), {EVIL: EVIL, "program": EVIL}, EVIL, copies)
