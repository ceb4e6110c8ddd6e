"""The records of a file, filled with the tensors that its pickles place over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tensafe.checkpoints.content import Content
from tensafe.checkpoints.pickled.dtypes import ITEMSIZES, storage_dtype
from tensafe.checkpoints.pickled.globals import FoundGlobal
from tensafe.checkpoints.pickled.inline import inline_record
from tensafe.checkpoints.pickled.path import Path
from tensafe.checkpoints.pickled.pickles import Pickle, read_pickle
from tensafe.checkpoints.pickled.placed import Placed
from tensafe.checkpoints.pickled.values import Made, Stored, Tuple, Value
from tensafe.checkpoints.pickled.walk import Found, Walk
from tensafe.checkpoints.record import Record, tensor_over

MOST_PROBLEMS = 200


@dataclass(frozen=True, slots=True)
class StorageId:
    """A storage as a persistent id names it; `shift` elements into it begins what is meant."""

    key: str
    device: str
    dtype: str
    numel: int
    shift: int = 0

    @property
    def itemsize(self) -> int:
        return ITEMSIZES[self.dtype]

    @property
    def nbytes(self) -> int:
        return self.numel * self.itemsize


def storage_id(identity: Value) -> StorageId | None:
    """`("storage", torch.FloatStorage, "0", "cpu", 12)`; None when it is something else."""
    if not isinstance(identity, Tuple) or len(identity.items) < 5 or identity.items[0] != "storage":
        return None
    kind, key, device, numel = identity.items[1:5]
    dtype = storage_dtype(kind)
    if dtype is None or not isinstance(key, (str, int)) or type(numel) is not int or numel < 0:
        return None
    view = identity.items[5] if len(identity.items) > 5 else None
    shift = view.items[1] if isinstance(view, Tuple) and len(view.items) == 3 else 0
    return StorageId(
        str(key),
        device if isinstance(device, str) else "cpu",
        dtype,
        numel,
        shift if type(shift) is int else 0,
    )


RecordOf = Callable[[StorageId], "Record | str"]
"""The record behind an id, or why there is none."""


def no_record(found: StorageId) -> Record | str:
    """Of a pickle that has nothing beside it."""
    return f"its storage {found.key} is not in the file"


@dataclass
class Shelf:
    """Records by their labels, the pickles that place tensors over them, and what is wrong."""

    records: dict[str, Record] = field(default_factory=dict)
    pickles: list[Pickle] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def read(
        self,
        content: Content,
        name: str,
        root: Path,
        record_of: RecordOf = no_record,
        start: int = 0,
        depth: int = 0,
    ) -> Pickle:
        """Read one pickle and put its tensors in their places; raises `CheckpointError`."""
        pickle = read_pickle(content, start)
        self.place(pickle, name, root, record_of, depth)
        return pickle

    def place(
        self, pickle: Pickle, name: str, root: Path, record_of: RecordOf = no_record, depth: int = 0
    ) -> None:
        """Put the tensors of a pickle over their records, those of the pickles within it too."""
        self.pickles.append(pickle)
        nested = self._read_nested(pickle, name, depth)
        walk = Walk()
        walk.follow(pickle.machine, pickle.result, root)
        for words in walk.problems:
            self.complain(words)
        for found in walk.found:
            self._place_one(found, pickle, name, record_of, nested)

    def complain(self, words: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(words)

    def _place_one(
        self, found: Found, pickle: Pickle, name: str, record_of: RecordOf, nested: dict[int, Record | str]
    ) -> None:
        value = found.what.storage if isinstance(found.what, Placed) else found.what
        record: Record | str | None
        if id(value) in nested:
            record = nested[id(value)]
        elif isinstance(value, Stored):
            record = self._stored(value, found, record_of)
        else:
            record = inline_record(found, pickle, name)
        if isinstance(record, Record):
            self._put(found, record)
        elif record:
            self.complain(f"{found.names[0]}: {record}")

    def _stored(self, stored: Stored, found: Found, record_of: RecordOf) -> Record | str | None:
        meant = storage_id(stored.identity)
        if meant is None:
            kind = (
                stored.identity.items[0]
                if isinstance(stored.identity, Tuple) and stored.identity.items
                else None
            )
            return None if kind == "module" else "its storage has an id of an unknown form"
        if meant.shift and isinstance(found.what, Placed):
            found.what = replace(found.what, offset=found.what.offset + meant.shift)
        record = record_of(meant)
        if isinstance(record, Record) and meant.shift:
            record.notes = tuple(dict.fromkeys((*record.notes, OLD_VIEW)))
        return record

    def _put(self, found: Found, record: Record) -> None:
        record = self.records.setdefault(record.label, record)
        tensor = tensor_over(record, found)
        if isinstance(tensor, str):
            self.complain(tensor)
        else:
            record.tensors.append(tensor)

    def _read_nested(self, pickle: Pickle, name: str, depth: int) -> dict[int, Record | str]:
        """The storages that `pickle.dump` writes as files of the old format within the pickle."""
        from tensafe.checkpoints.formats.torch_old import read_nested

        found: dict[int, Record | str] = {}
        for made in pickle.machine.made:
            if made.name == "torch.storage._load_from_bytes":
                found[id(made)] = read_nested(self, made, pickle, name, depth)
        return found

    def distrust(self, pickle: Pickle, words: str) -> None:
        """Note code that would run and could not be looked at."""
        pickle.globals += (FoundGlobal("torch.storage._load_from_bytes", 1, "dangerous", words, False),)


OLD_VIEW = "holds a view of the oldest kind"


def calls_of(made: Made) -> Value:
    """The first argument of a call, None without one."""
    return made.positional[0] if made.positional else None
