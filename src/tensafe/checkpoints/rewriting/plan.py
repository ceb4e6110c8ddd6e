"""What to change in a pickle so that its storages need no dead bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tensafe.checkpoints.pickled.path import Path
from tensafe.checkpoints.pickled.pickles import Pickle
from tensafe.checkpoints.pickled.placed import Placed
from tensafe.checkpoints.pickled.values import Made, Stored, Tuple, Value
from tensafe.checkpoints.pickled.walk import Found, Walk
from tensafe.checkpoints.record import Record, runs_for, tensor_over
from tensafe.checkpoints.shelf import StorageId, storage_id
from tensafe.memory.covered import covered
from tensafe.memory.extent import Extent
from tensafe.memory.packing import Packing, pack

NUMEL = 4  # its place in a persistent id
OFFSET, STRIDE = 1, 3  # places among the arguments of a rebuild function


class Refused(Exception):
    """A storage stays as it is; the text says why."""


@dataclass
class Repacked:
    """One storage: its rows, its new size, and the numbers that the pickle needs for it."""

    packing: Packing
    nbytes: int
    numbers: dict[int, int]  # by their places in the pickle


@dataclass
class _Use:
    """What the pickle does with one storage."""

    ids: list[tuple[Tuple, StorageId]] = field(default_factory=list)
    tensors: list[Placed] = field(default_factory=list)
    why_not: str = ""


@dataclass
class Plan:
    """The storages to rewrite, by key, and why others with dead bytes are not."""

    repacked: dict[str, Repacked]
    refused: dict[str, str]

    @property
    def numbers(self) -> dict[int, int]:
        return {place: number for item in self.repacked.values() for place, number in item.numbers.items()}


def plan_of(pickle: Pickle, records: dict[str, Record]) -> Plan:
    """Plan every record, given by storage key, that has dead bytes."""
    plan = Plan({}, {})
    for key, use in _uses(pickle).items():
        record = records.get(key)
        if record is None:
            continue
        try:
            found = _repack(use, record, pickle)
        except Refused as error:
            plan.refused[key] = str(error)
            continue
        if found is not None:
            plan.repacked[key] = found
    return plan


def _uses(pickle: Pickle) -> dict[str, _Use]:
    uses: dict[str, _Use] = {}
    for stored in pickle.machine.stored:
        meant = storage_id(stored.identity)
        if meant is not None and isinstance(stored.identity, Tuple):
            uses.setdefault(meant.key, _Use()).ids.append((stored.identity, meant))
    walk = Walk()
    walk.follow(pickle.machine, pickle.result, Path(None, ""))
    for found in walk.found:
        _note(found, uses)
    return uses


def _note(found: Found, uses: dict[str, _Use]) -> None:
    value = found.what.storage if isinstance(found.what, Placed) else found.what
    meant = storage_id(value.identity) if isinstance(value, Stored) else None
    if meant is None:
        return
    use = uses[meant.key]
    if not isinstance(found.what, Placed):
        use.why_not = f"{found.names[0]} is the storage itself, or an object that tensafe does not know"
    elif found.what.arguments is None:
        use.why_not = f"{found.names[0]} is made by a call that is not edited"
    elif meant.shift:
        use.why_not = f"{found.names[0]} is a view of the oldest kind"
    else:
        use.tensors.append(found.what)


def _repack(use: _Use, record: Record, pickle: Pickle) -> Repacked | None:
    """None when there is nothing to gain; raises `Refused`."""
    extents = [_extent(placed, record) for placed in use.tensors]
    if any(extent is None for extent in extents):
        raise Refused("a tensor reaches beyond it")
    known = [extent for extent in extents if extent is not None]
    grain = max((meant.itemsize for _, meant in use.ids), default=1)
    packing = pack(known)
    nbytes = -(-packing.nbytes // grain) * grain
    if use.why_not:
        if covered([t.extent for t in record.tensors], runs_for(record.tensors)).nbytes < record.nbytes:
            raise Refused(use.why_not)
        return None
    if nbytes >= record.nbytes:
        return None
    numbers: dict[int, int] = {}
    for identity, meant in use.ids:
        if meant.nbytes != record.nbytes:
            raise Refused("its size is not the one that the pickle says")
        _change(numbers, identity, NUMEL, nbytes // meant.itemsize, pickle)
    for placed, old, new in zip(use.tensors, known, packing.extents, strict=True):
        _move(numbers, placed, old, new, pickle)
    return Repacked(packing, nbytes, numbers)


def _extent(placed: Placed, record: Record) -> Extent | None:
    tensor = tensor_over(record, Found(placed, ["?"], "", ()))
    return None if isinstance(tensor, str) else tensor.extent


def _move(numbers: dict[int, int], placed: Placed, old: Extent, new: Extent, pickle: Pickle) -> None:
    assert placed.arguments is not None
    _change(numbers, placed.arguments, OFFSET, new.offset // new.itemsize, pickle)
    if new.strides == old.strides:
        return
    strides = _tuple(placed.arguments.items[STRIDE])
    if placed.arguments.is_shared or strides is None:
        raise Refused("the strides of a tensor stand where they cannot be changed alone")
    for index, stride in enumerate(new.strides):
        _change(numbers, strides, index, stride // new.itemsize, pickle)


def _tuple(value: Value) -> Tuple | None:
    if isinstance(value, Made) and value.positional:
        value = value.positional[0]
    return value if isinstance(value, Tuple) else None


def _change(numbers: dict[int, int], within: Tuple, index: int, number: int, pickle: Pickle) -> None:
    """Note a number to put in; raises `Refused` where something else would see it change."""
    if within.items[index] == number:
        return
    place = within.places[index]
    if within.is_shared or place in pickle.machine.kept_places or numbers.get(place, number) != number:
        raise Refused("a number of it is used in two places of the pickle")
    numbers[place] = number


def unreadable(records: dict[str, Record]) -> Iterator[str]:
    """Keys of records that cannot be copied from place to place."""
    for key, record in records.items():
        if any(note.startswith("compressed") for note in record.notes):
            yield key
