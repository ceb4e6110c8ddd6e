"""Tensors of equal content in different bytes of a file: read, hashed, grouped."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from tensafe.checkpoints.checkpoint import Checkpoint
from tensafe.checkpoints.record import Record
from tensafe.checkpoints.rewriting.elements import element_bytes
from tensafe.memory.map import NamedTensor

Progress = Callable[[int, int], None]
Candidate = tuple[Record, NamedTensor]


def find_duplicates(checkpoint: Checkpoint, progress: Progress | None = None) -> tuple[tuple[str, ...], ...]:
    """The names of tensors that are equal, the largest first; raises `CheckpointError`."""
    groups = [group for group in _alike(checkpoint) if len(group) > 1]
    total = sum(tensor.nbytes for group in groups for _, tensor in group)
    done = 0
    found: list[tuple[int, tuple[str, ...]]] = []
    try:
        for group in groups:
            by_hash: dict[bytes, list[NamedTensor]] = {}
            for record, tensor in group:
                by_hash.setdefault(_digest(record, tensor), []).append(tensor)
                done += tensor.nbytes
                if progress is not None:
                    progress(done, total)
            found += [
                (same[0].nbytes, tuple(t.name for t in same)) for same in by_hash.values() if len(same) > 1
            ]
    finally:
        checkpoint.close()
    return tuple(names for _, names in sorted(found, key=lambda item: -item[0]))


def _alike(checkpoint: Checkpoint) -> Iterator[list[Candidate]]:
    """Tensors of one dtype and shape, each place once."""
    groups: dict[tuple[object, ...], dict[tuple[object, ...], Candidate]] = {}
    for record in checkpoint.shelf.records.values():
        if record.content is None:
            continue
        for tensor in record.tensors:
            if tensor.nbytes:
                notes = tuple(note for note in tensor.notes if note.endswith(" bit"))
                places = groups.setdefault((tensor.dtype, tensor.shape, notes), {})
                places.setdefault((record.label, tensor.extent), (record, tensor))
    for places in groups.values():
        yield list(places.values())


def _digest(record: Record, tensor: NamedTensor) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    assert record.content is not None
    for chunk in element_bytes(record.content, tensor.extent):
        digest.update(chunk)
    return digest.digest()
