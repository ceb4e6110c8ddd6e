"""Files that begin with a pickle: the old format of `torch.save`, or what `pickle.dump` wrote."""

from __future__ import annotations

from tensafe.checkpoints.checkpoint import Checkpoint
from tensafe.checkpoints.content import Source
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.formats.torch_old import MAGIC, read_old
from tensafe.checkpoints.pickled.path import Path
from tensafe.checkpoints.pickled.pickles import Pickle, read_pickle
from tensafe.checkpoints.shelf import Shelf

MOST_PICKLES = 1000


def read_plain(source: Source, root: Path) -> Checkpoint:
    """Read what follows, up to the last pickle; raises `CheckpointError`."""
    first = read_pickle(source)
    if first.result == MAGIC and isinstance(first.result, int):
        return read_old(source, first, root)
    _refuse_joblib(first, source)
    shelf = Shelf()
    pickles = [first]
    while pickles[-1].stop < source.nbytes and len(pickles) < MOST_PICKLES:
        try:
            pickles.append(read_pickle(source, pickles[-1].stop))
        except CheckpointError:
            break
    several = len(pickles) > 1
    for index, pickle in enumerate(pickles):
        shelf.place(
            pickle, f"pickle {index}" if several else "pickle", Path(None, f"[{index}]") if several else root
        )
    left = source.nbytes - pickles[-1].stop
    if left:
        shelf.complain(f"{left:,} bytes follow the last pickle and were not looked at")
    facts = {"pickle protocol": str(first.machine.protocol)}
    if several:
        facts["pickles"] = str(len(pickles))
    return Checkpoint(source.path, "pickle", shelf, facts, [source])


def _refuse_joblib(pickle: Pickle, source: Source) -> None:
    if any(module.split(".")[0] == "joblib" for module, _ in pickle.machine.counts):
        raise CheckpointError(
            f"{source.path}: written by joblib, which puts raw arrays between the instructions: load it with "
            "joblib and save it otherwise"
        )
