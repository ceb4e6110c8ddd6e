"""Who shares this tensor's memory, who wrote to it, and a copy of it at the speed of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensafe.aliases.overlap import Overlap as Overlap
    from tensafe.aliases.overlap import overlap as overlap
    from tensafe.copies.arrays import to_numpy as to_numpy
    from tensafe.copies.compact import compact as compact
    from tensafe.copies.compact import copy as copy
    from tensafe.copies.drop_in import deepcopy as deepcopy
    from tensafe.copies.freeze import freeze as freeze
    from tensafe.copies.pickling.dumping import Pickler as Pickler
    from tensafe.copies.pickling.dumping import dumps as dumps
    from tensafe.copies.pickling.loading import Unpickler as Unpickler
    from tensafe.copies.pickling.loading import loads as loads
    from tensafe.copies.plan import plan as plan
    from tensafe.copies.readonly import readonly as readonly
    from tensafe.copies.sharing.handle import share as share
    from tensafe.copies.snapshots.best import BestWeights as BestWeights
    from tensafe.copies.snapshots.randomness import rng as rng
    from tensafe.errors import TensafeError as TensafeError
    from tensafe.guards import watching as watching
    from tensafe.look import explain as explain
    from tensafe.look import memory_map as memory_map
    from tensafe.memory.overlap import Undecided as Undecided
    from tensafe.runtime.values.healing import safe_inplace as safe_inplace
    from tensafe.snapshots import Snapshot as Snapshot
    from tensafe.snapshots import rollback as rollback
    from tensafe.snapshots import snapshot as snapshot
    from tensafe.watched import watch as watch

__version__ = "0.1.0"

_HOMES = {
    "BestWeights": "tensafe.copies.snapshots.best",
    "Overlap": "tensafe.aliases.overlap",
    "Pickler": "tensafe.copies.pickling.dumping",
    "Snapshot": "tensafe.snapshots",
    "TensafeError": "tensafe.errors",
    "Undecided": "tensafe.memory.overlap",
    "Unpickler": "tensafe.copies.pickling.loading",
    "compact": "tensafe.copies.compact",
    "copy": "tensafe.copies.compact",
    "deepcopy": "tensafe.copies.drop_in",
    "dumps": "tensafe.copies.pickling.dumping",
    "explain": "tensafe.look",
    "freeze": "tensafe.copies.freeze",
    "load_ipython_extension": "tensafe.magics",
    "loads": "tensafe.copies.pickling.loading",
    "memory_map": "tensafe.look",
    "overlap": "tensafe.aliases.overlap",
    "plan": "tensafe.copies.plan",
    "readonly": "tensafe.copies.readonly",
    "rng": "tensafe.copies.snapshots.randomness",
    "rollback": "tensafe.snapshots",
    "safe_inplace": "tensafe.runtime.values.healing",
    "share": "tensafe.copies.sharing.handle",
    "snapshot": "tensafe.snapshots",
    "to_numpy": "tensafe.copies.arrays",
    "unload_ipython_extension": "tensafe.magics",
    "watch": "tensafe.watched",
    "watching": "tensafe.guards",
}
"""Where each public name lives; it is imported when it is first used, and torch not before."""

__all__ = [
    "BestWeights",
    "Overlap",
    "Pickler",
    "Snapshot",
    "TensafeError",
    "Undecided",
    "Unpickler",
    "compact",
    "copy",
    "deepcopy",
    "dumps",
    "explain",
    "freeze",
    "loads",
    "memory_map",
    "overlap",
    "plan",
    "readonly",
    "rng",
    "rollback",
    "safe_inplace",
    "share",
    "snapshot",
    "to_numpy",
    "watch",
    "watching",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
