"""The records of all ranks of a training as one, where there are several."""

from __future__ import annotations

from torch import distributed

from tensafe.findings import Record, from_json, to_json
from tensafe.findings.merging import Told, merge


def rank() -> int:
    """Of this process; 0 where there is one process."""
    return distributed.get_rank() if _several() else 0


def of_all_ranks(record: Record) -> Record:
    """Every rank's record as one, on every rank; all of them have to call it."""
    if not _several():
        return record
    told: list[str] = [""] * distributed.get_world_size()
    distributed.all_gather_object(told, to_json(record))
    return merge([Told(from_json(text), f"rank {number}", number) for number, text in enumerate(told)])


def _several() -> bool:
    ready = distributed.is_available() and distributed.is_initialized()
    return bool(ready and distributed.get_world_size() > 1)
