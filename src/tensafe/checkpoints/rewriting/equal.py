"""Compares two checkpoints: names, what they import, who shares with whom, and every byte of every tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tensafe.checkpoints.checkpoint import Checkpoint
from tensafe.checkpoints.content import Content
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.record import Record, runs_for
from tensafe.checkpoints.rewriting.elements import element_bytes, reading_order
from tensafe.memory.covered import covered
from tensafe.memory.extent import Extent
from tensafe.memory.map import NamedTensor

Watched = Callable[[Iterable[bytes]], Iterator[bytes]]
Group = list[tuple[Record, NamedTensor]]


def assert_equal(before: Checkpoint, after: Checkpoint, dropped: set[str], watched: Watched = iter) -> None:
    """Raise `CheckpointError` when the second is not the first without dead bytes."""
    if before.globals != after.globals or before.shelf.problems != after.shelf.problems:
        raise CheckpointError(f"{after.path}: it would import other names than {before.path}")
    old = [record for label, record in before.shelf.records.items() if label not in dropped]
    new = list(after.shelf.records.values())
    if [_described(record) for record in old] != [_described(record) for record in new]:
        raise CheckpointError(f"{after.path}: it would hold other tensors than {before.path}")
    for first, second in zip(old, new, strict=True):
        _compare(first, second, watched)


def _described(record: Record) -> list[tuple[object, ...]]:
    """Everything of a record's tensors but their places, with the place of the record."""
    about = (record.device, record.dtype)
    return [(*about, t.names, t.shape, t.dtype, t.kind, t.notes) for t in record.tensors]


def _compare(old: Record, new: Record, watched: Watched) -> None:
    before, after = (
        covered([t.extent for t in record.tensors], runs_for(record.tensors)) for record in (old, new)
    )
    if (before.nbytes, before.shared_nbytes) != (after.nbytes, after.shared_nbytes) and before.exact:
        raise CheckpointError(f"{new.label}: its tensors would share other bytes than before")
    if old.content is None or new.content is None:
        return
    seen: set[tuple[Extent, Extent]] = set()
    for first, second in zip(old.tensors, new.tensors, strict=True):
        pair = first.extent, second.extent
        if pair not in seen and not _same(old.content, new.content, *pair, watched):
            raise CheckpointError(f"{new.label}: {first.names[0]} would have other content than before")
        seen.add(pair)


def _same(old: Content, new: Content, before: Extent, after: Extent, watched: Watched) -> bool:
    order = reading_order(before)
    first = watched(element_bytes(old, before, order))
    return _equal_streams(first, element_bytes(new, after, order))


def _equal_streams(first: Iterator[bytes], second: Iterator[bytes]) -> bool:
    """Whether two rows of parts hold the same bytes, however they are cut."""
    a = b = b""
    while True:
        a, b = a or next(first, b""), b or next(second, b"")
        if not a or not b:
            return not a and not b
        length = min(len(a), len(b))
        if a[:length] != b[:length]:
            return False
        a, b = a[length:], b[length:]
