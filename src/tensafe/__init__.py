"""Who shares this tensor's memory, who wrote to it, and a copy of it at the speed of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensafe.aliases.overlap import Overlap as Overlap
    from tensafe.aliases.overlap import overlap as overlap
    from tensafe.errors import TensafeError as TensafeError
    from tensafe.guards import watching as watching
    from tensafe.look import explain as explain
    from tensafe.look import memory_map as memory_map
    from tensafe.memory.overlap import Undecided as Undecided
    from tensafe.runtime.values.healing import safe_inplace as safe_inplace
    from tensafe.watched import watch as watch

__version__ = "0.1.0"

_HOMES = {
    "Overlap": "tensafe.aliases.overlap",
    "TensafeError": "tensafe.errors",
    "Undecided": "tensafe.memory.overlap",
    "explain": "tensafe.look",
    "memory_map": "tensafe.look",
    "overlap": "tensafe.aliases.overlap",
    "safe_inplace": "tensafe.runtime.values.healing",
    "watch": "tensafe.watched",
    "watching": "tensafe.guards",
}
"""Where each public name lives; it is imported when it is first used, and torch not before."""

__all__ = [
    "Overlap",
    "TensafeError",
    "Undecided",
    "explain",
    "memory_map",
    "overlap",
    "safe_inplace",
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
