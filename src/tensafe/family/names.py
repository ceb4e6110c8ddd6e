"""What a process is called in the report, and which rank it is."""

from __future__ import annotations

import os
import sys

_rank: int | None = None
_rank_of: int | None = None  # the process that is this rank; its children only belong to it
_worker = ("", 0)  # a loader's worker, and its process: some PyTorch versions forget it when the loop ends


def joined(rank: int) -> None:
    """This process is this rank."""
    global _rank, _rank_of
    _rank, _rank_of = rank, os.getpid()


def belongs_to(rank: int | None) -> None:
    """This process was started by this rank."""
    global _rank
    _rank = rank


def rank_from_environment() -> None:
    """`torchrun` and its like say so; one process alone is no rank."""
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if rank.isdecimal() and size.isdecimal() and int(size) > 1:
        joined(int(rank))


def rank() -> int | None:
    return _rank


def name(otherwise: str) -> str:
    """`rank 1, DataLoader worker 0`; `otherwise` where nothing else gave this process a name."""
    is_rank = _rank is not None and _rank_of == os.getpid()
    own = _loader_worker() or ("" if is_rank else _of_multiprocessing() or otherwise)
    return ", ".join(part for part in ("" if _rank is None else f"rank {_rank}", own) if part)


def _loader_worker() -> str:
    global _worker
    data = sys.modules.get("torch.utils.data")
    known = getattr(data, "get_worker_info", None)
    info = known() if known is not None else None
    if info is not None:
        _worker = (f"DataLoader worker {info.id}", os.getpid())
    called, process = _worker
    return called if process == os.getpid() else ""


def _of_multiprocessing() -> str:
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return ""
    return str(process.current_process().name)
