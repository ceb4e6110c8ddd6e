"""Writes a checkpoint again without its dead bytes, and only keeps the new file if it is equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from tensafe.checkpoints.checkpoint import Checkpoint
from tensafe.checkpoints.content import Content
from tensafe.checkpoints.formats.torch_old import NUMEL_NBYTES, OLD
from tensafe.checkpoints.formats.torch_zip import ARCHIVE, UNUSED
from tensafe.checkpoints.pickled.edits import edited, edited_nbytes, edits_of, pieces
from tensafe.checkpoints.pickled.pickles import Pickle
from tensafe.checkpoints.reader import read_file
from tensafe.checkpoints.record import Record
from tensafe.checkpoints.rewriting.beside import written_beside
from tensafe.checkpoints.rewriting.equal import assert_equal
from tensafe.checkpoints.rewriting.gather import gathered
from tensafe.checkpoints.rewriting.plan import Plan, Repacked, plan_of, unreadable
from tensafe.checkpoints.rewriting.zip_writer import ZipWriter

Progress = Callable[[int, int], None]
DENSE = ["safetensors", "npy", "npz"]


def compact(checkpoint: Checkpoint, out: Path, progress: Progress | None = None) -> str:
    """Write `out` if bytes can be saved, and say in a sentence what was done; raises `CheckpointError`.

    The file is written beside its place, read back, compared with the original tensor by tensor, then
    renamed.
    """
    kind = checkpoint.format.split(",")[0]
    if kind in DENSE or "safetensors" in kind:
        return f"{out} was not written: {kind} stores each tensor by itself, there are no dead bytes"
    if kind not in (ARCHIVE, OLD):
        return f"{out} was not written: only files of torch.save are rewritten, this is a {kind}"
    if checkpoint.shelf.problems:
        return f"{out} was not written: the file is not sound: {checkpoint.shelf.problems[0]}"
    plan = _plan(checkpoint)
    dropped = _dropped(checkpoint)
    if not plan.repacked and not dropped:
        return _nothing(checkpoint, plan, out)
    steps = _Steps(checkpoint, progress)
    with written_beside(out) as name:
        with open(name, "wb") as file:
            if checkpoint.directory is not None:
                _write_zip(checkpoint, plan, dropped, file, steps)
            else:
                _write_old(checkpoint, plan, file, steps)
        after = read_file(name)
        try:
            assert_equal(checkpoint, after, dropped, steps)
        finally:
            after.close()
            checkpoint.close()
    return _told(checkpoint, after, plan, out)


class _Steps:
    """How much is done: every byte is written once and compared once."""

    def __init__(self, checkpoint: Checkpoint, progress: Progress | None) -> None:
        self._progress, self._done = progress, 0
        records = checkpoint.shelf.records.values()
        self._total = sum(r.nbytes + sum(t.nbytes for t in r.tensors) for r in records)

    def __call__(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            yield chunk
            self._done += len(chunk)
            if self._progress is not None:
                self._progress(min(self._done, self._total), self._total)


def _plan(checkpoint: Checkpoint) -> Plan:
    begin = "data/" if checkpoint.directory is not None else "storage "
    records = {
        label.removeprefix(begin): record
        for label, record in checkpoint.shelf.records.items()
        if label.startswith(begin) and record.content is not None
    }
    for key in list(unreadable(records)):
        del records[key]
    return plan_of(_body(checkpoint), records)


def _body(checkpoint: Checkpoint) -> Pickle:
    return checkpoint.old.body if checkpoint.old is not None else checkpoint.shelf.pickles[0]


def _dropped(checkpoint: Checkpoint) -> set[str]:
    """Labels of the records that nothing in the pickle names."""
    if checkpoint.directory is None:
        return set()
    return {label for label, record in checkpoint.shelf.records.items() if UNUSED in record.notes}


def _write_zip(checkpoint: Checkpoint, plan: Plan, dropped: set[str], file: BinaryIO, steps: _Steps) -> None:
    directory, prefix = checkpoint.directory, checkpoint.prefix
    assert directory is not None
    writer = ZipWriter(file, _alignment(checkpoint))
    pickle = _body(checkpoint)
    edits = edits_of(pickle, plan.numbers)
    for name, entry in directory.records.items():
        label = name.removeprefix(prefix)
        content = directory.open(name)
        found = plan.repacked.get(label.removeprefix("data/")) if label.startswith("data/") else None
        if label in dropped:
            continue
        if label == "data.pkl":
            nbytes = edited_nbytes(0, pickle.content.nbytes, edits)
            writer.write(name, nbytes, edited(pickle.content, 0, pickle.content.nbytes, edits))
        elif found is not None:
            writer.write(name, found.nbytes, steps(gathered(content, found.packing, found.nbytes)))
        else:
            writer.write(name, entry.nbytes, steps(pieces(content, 0, entry.nbytes)))
    writer.close()


def _alignment(checkpoint: Checkpoint) -> int:
    words = checkpoint.facts.get("storage alignment", "")
    number = int(words) if words.isdigit() and len(words) < 6 else 0
    return number if number and not number & (number - 1) and number <= 1 << 14 else 64


def _write_old(checkpoint: Checkpoint, plan: Plan, file: BinaryIO, steps: _Steps) -> None:
    layout = checkpoint.old
    assert layout is not None
    content, body = layout.content, layout.body
    for chunk in pieces(content, 0, body.start):
        file.write(chunk)
    for chunk in edited(content, body.start, body.stop, edits_of(body, plan.numbers)):
        file.write(chunk)
    for chunk in pieces(content, body.stop, layout.pickles[-1].stop):
        file.write(chunk)
    for key in layout.keys:
        start, nbytes = layout.spans[key]
        found, itemsize = plan.repacked.get(key), layout.ids[key].itemsize
        size = found.nbytes if found is not None else nbytes
        file.write((size // itemsize).to_bytes(NUMEL_NBYTES, "little"))
        record = checkpoint.shelf.records[f"storage {key}"]
        for chunk in steps(_old_storage(record, found, content, start, nbytes)):
            file.write(chunk)


def _old_storage(
    record: Record, found: Repacked | None, content: Content, start: int, nbytes: int
) -> Iterator[bytes]:
    if found is None or record.content is None:
        return pieces(content, start, start + nbytes)
    return gathered(record.content, found.packing, found.nbytes)


def _nothing(checkpoint: Checkpoint, plan: Plan, out: Path) -> str:
    if plan.refused:
        return f"{out} was not written: {_reasons(plan)}"
    dead = checkpoint.memory().dead_nbytes
    why = "no byte is dead" if not dead else "its dead bytes lie between bytes in use and cannot be taken out"
    return f"{out} was not written: {why}"


def _told(before: Checkpoint, after: Checkpoint, plan: Plan, out: Path) -> str:
    old, new = before.sources[0].nbytes, after.sources[0].nbytes
    words = f"{out} written: {new:,} bytes instead of {old:,}, every tensor compared and equal"
    left = after.memory().dead_nbytes
    if left:
        words += f"; {left:,} dead bytes stay, between bytes that tensors share"
    return f"{words}; {_reasons(plan)}" if plan.refused else words


def _reasons(plan: Plan) -> str:
    key, why = next(iter(plan.refused.items()))
    more = f", and {len(plan.refused) - 1:,} more" if len(plan.refused) > 1 else ""
    return f"storage {key} stays as it is{more}: {why}"
