"""What reading a file gives: its map, the names that loading would import, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tensafe.checkpoints.content import Source
from tensafe.checkpoints.formats.zip_directory import ZipDirectory
from tensafe.checkpoints.pickled.globals import FoundGlobal
from tensafe.checkpoints.record import storages_of
from tensafe.checkpoints.shelf import Shelf
from tensafe.memory.map import MemoryMap

if TYPE_CHECKING:
    from tensafe.checkpoints.formats.torch_old import OldLayout


@dataclass
class Checkpoint:
    """One file, or several that belong together."""

    path: Path
    format: str  # "zip file of torch.save", "safetensors", …
    shelf: Shelf
    facts: dict[str, str] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    parts: Sequence[Checkpoint] = ()  # of a folder
    duplicates: tuple[tuple[str, ...], ...] = ()
    directory: ZipDirectory | None = None
    prefix: str = ""  # of the names in the zip file
    old: OldLayout | None = None
    is_script: bool = False
    unread: bool = False

    @property
    def bytes_read(self) -> int:
        return sum(source.bytes_read for source in self.sources)

    @property
    def globals(self) -> tuple[FoundGlobal, ...]:
        """The dangerous ones first, then by name; counts of all pickles together."""
        return merged(found for pickle in self.shelf.pickles for found in pickle.globals)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why `torch.load(weights_only=True)` would refuse the file; empty when it would take it."""
        if self.is_script:
            return ("it is TorchScript, which torch.jit.load reads",)
        return tuple(dict.fromkeys(reason for pickle in self.shelf.pickles for reason in pickle.refusals))

    @property
    def is_for_torch(self) -> bool:
        """Whether `torch.load` is what reads it."""
        return self.directory is not None or self.old is not None

    def memory(self) -> MemoryMap:
        """Storages with the tensors in them."""
        return MemoryMap(
            self.path.name or str(self.path),
            storages_of(list(self.shelf.records.values())),
            self.duplicates,
            tuple(self.shelf.problems),
            {"format": self.format} | self.facts,
        )

    def close(self) -> None:
        for source in self.sources:
            source.close()


def merged(found: Iterable[FoundGlobal]) -> tuple[FoundGlobal, ...]:
    """The same name from several pickles once."""
    counts: dict[str, FoundGlobal] = {}
    for item in found:
        known = counts.get(item.name)
        counts[item.name] = item if known is None else replace(item, count=item.count + known.count)
    order = {"dangerous": 0, "code": 1, "safe": 2}
    return tuple(sorted(counts.values(), key=lambda item: (order[item.verdict], item.name)))
