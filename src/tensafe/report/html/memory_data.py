"""A memory map as the rows that the script of a page draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from tensafe.memory.map import MemoryMap, NamedTensor, Storage
from tensafe.memory.overlap import Shared, meet
from tensafe.report.characters import printable
from tensafe.report.html.drawing import DEAD, MIXED, SHARED, USED, marks_of, segments_of
from tensafe.report.html.wording import shortened

NAME_CHARACTERS = 6_000_000
"""What all names of a page may take; beyond, the long ones lose their middle."""
SHORTEST_ALLOWANCE = 160
LARGEST_EXACT = 2**53
"""Above it a number goes as text, as JavaScript would round it."""

MOST_PAIRED = 32
"""A storage of more tensors has its finely strided pairs not looked at one by one."""
MEET_STEPS = 2_000

SEGMENT_KINDS = (DEAD, USED, SHARED, MIXED)


def memory_data(memory: MemoryMap) -> dict[str, Any]:
    """`{"storages": [...]}`, the largest first; short keys, as there may be 10,000 of them."""
    names = sum(len(tensor.names) for storage in memory.storages for tensor in storage.tensors)
    allowance = max(SHORTEST_ALLOWANCE, NAME_CHARACTERS // max(1, names))
    ordered = sorted(memory.storages, key=lambda storage: -storage.nbytes)
    return {"storages": [_storage(storage, allowance) for storage in ordered]}


def _storage(storage: Storage, allowance: int) -> dict[str, Any]:
    return {
        "label": _name(storage.label, allowance),
        "nbytes": _number(storage.nbytes),
        "device": printable(storage.device),
        "notes": [_name(note, allowance) for note in storage.notes],
        "dead": _number(storage.dead_nbytes),
        "shared": _number(storage.shared_nbytes),
        "exact": storage.covered.exact,
        "segments": [
            [_number(piece.start), _number(piece.stop), SEGMENT_KINDS.index(piece.kind)]
            for piece in segments_of(storage)
        ],
        "tensors": [_tensor(tensor, storage, allowance) for tensor in storage.tensors],
        "pairs": _pairs(storage),
    }


def _pairs(storage: Storage) -> list[list[int]] | None:
    """`[i, j, sure]` for tensors that share bytes where the drawing cannot tell, None where nobody looked.

    The drawing tells where both are drawn run by run; here are the pairs with a finely strided one.
    """
    fine = [marks_of(tensor.extent, storage.nbytes).fine for tensor in storage.tensors]
    if not storage.shared_nbytes or not any(fine):
        return []
    if len(fine) > MOST_PAIRED:
        return None
    extents = [tensor.extent for tensor in storage.tensors]
    pairs = [(i, j) for i, j in combinations(range(len(fine)), 2) if fine[i] or fine[j]]
    answers = [(i, j, meet(extents[i], extents[j], MEET_STEPS)) for i, j in pairs]
    return [[i, j, int(isinstance(answer, Shared))] for i, j, answer in answers if answer is not None]


def _tensor(tensor: NamedTensor, storage: Storage, allowance: int) -> list[Any]:
    marks = marks_of(tensor.extent, storage.nbytes)
    runs = _numbers(place for run in marks.runs for place in run)
    return [
        [_name(name, allowance) for name in tensor.names],
        _numbers(tensor.shape),
        _numbers(tensor.strides),
        printable(tensor.dtype),
        printable(tensor.kind),
        [_name(note, allowance) for note in tensor.notes],
        _number(tensor.extent.start),
        _number(tensor.extent.stop),
        _number(tensor.nbytes),
        runs,
        int(marks.fine),
    ]


def _name(name: str, allowance: int) -> str:
    return printable(shortened(name, allowance))


def _numbers(values: Iterable[int]) -> Sequence[int | str]:
    return [_number(value) for value in values]


def _number(value: int) -> int | str:
    return value if abs(value) <= LARGEST_EXACT else str(value)
