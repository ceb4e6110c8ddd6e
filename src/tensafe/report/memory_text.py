"""A memory map as text: totals, then storages, the largest first, then what deserves a word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tensafe.memory.covered import covered
from tensafe.memory.map import MemoryMap, NamedTensor, Storage
from tensafe.report.bar import BLOCKS, Blocks, bar
from tensafe.report.characters import cells, printable
from tensafe.report.html.wording import count, exact, shortened, size

MOST_ROWS = 24
MOST_TENSORS = 6
MOST_REMARKS = 6
NARROWEST = 60
INDENT = "  "
SIZE = 10
_DIGITS = re.compile(r"\d+")


def memory_text(
    memory: MemoryMap, width: int = 100, blocks: Blocks = BLOCKS, most_rows: int = MOST_ROWS
) -> str:
    """The map in lines of at most `width` columns where names allow it; ends without a newline."""
    width = max(width, NARROWEST)
    lines = [*_head(memory), *_rows(memory, width, blocks, most_rows), *_remarks(memory, width)]
    return "\n".join(printable(line).rstrip() for line in lines)


def _head(memory: MemoryMap) -> Iterator[str]:
    tensors = count(memory.tensor_count, "tensor")
    yield f"{memory.title or 'nothing'}: {tensors} in {count(len(memory.storages), 'storage')}"
    for key, value in memory.facts.items():
        yield f"{INDENT}{key}: {value}"
    figures = [
        _Figure("stored", memory.stored_nbytes),
        *_kinds(memory),
        _Figure("dead", memory.dead_nbytes, "reached by none of them", _at_least(memory.storages)),
        _Figure("shared", memory.shared_nbytes, "reached by two or more", _at_most(memory.storages)),
    ]
    if memory.logical_nbytes != memory.stored_nbytes - memory.dead_nbytes:
        figures.append(_Figure("apart", memory.logical_nbytes, "if each tensor were stored alone"))
    shown = [one for one in figures if one.nbytes or one.bound or one.label == "stored"]
    widest = max(len(f"{one.nbytes:,}") for one in shown)
    column = max(len(one.label) for one in shown)
    for one in shown:
        said = ", ".join(part for part in (one.bound, one.meaning) if part)
        line = f"{INDENT}{one.label:<{column}}{size(one.nbytes):>{SIZE}}  {one.nbytes:>{widest},} bytes"
        yield f"{line}  {said}" if said else line


class _Figure(NamedTuple):
    """A total; `bound` says where it could not be counted exactly."""

    label: str
    nbytes: int
    meaning: str = ""
    bound: str = ""  # "at most", "at least"


def _at_least(storages: Iterable[Storage]) -> str:
    """What is reached may be less than counted, and what is dead more."""
    return "at least" if any(not one.covered.exact and one.device != "meta" for one in storages) else ""


def _at_most(storages: Iterable[Storage]) -> str:
    return "at most" if _at_least(storages) else ""


def _kinds(memory: MemoryMap) -> list[_Figure]:
    """Bytes by what they are for, each byte once in a kind; nothing where there is one kind only."""
    totals: dict[str, int] = {}
    unsure: set[str] = set()
    for storage in memory.storages:
        if storage.device == "meta":
            continue
        for kind in dict.fromkeys([tensor.kind for tensor in storage.tensors]):
            own = [tensor.extent for tensor in storage.tensors if tensor.kind == kind]
            reached = storage.covered if len(own) == len(storage.tensors) else covered(own)
            totals[kind] = totals.get(kind, 0) + min(reached.nbytes, storage.nbytes)
            unsure.update([] if reached.exact else [kind])
    if len(totals) < 2:
        return []
    ordered = sorted(totals.items(), key=lambda one: -one[1])
    return [_Figure(f"  {kind}", n, "", "at most" if kind in unsure else "") for kind, n in ordered]


@dataclass(frozen=True)
class _Row:
    """Storages that are shown as one: alike but for the numbers in their names."""

    name: str
    storages: list[Storage]

    @property
    def first(self) -> Storage:
        return self.storages[0]


def _rows(memory: MemoryMap, width: int, blocks: Blocks, most: int) -> Iterator[str]:
    rows = _grouped(memory.storages)
    shown = rows[:most]
    if not shown:
        return
    yield ""
    columns = _Columns(shown, width)
    for row in shown:
        yield from _row(row, columns, width, blocks)
    rest = [storage for row in rows[most:] for storage in row.storages]
    if rest:
        nbytes = sum(storage.nbytes for storage in rest)
        tensors = sum(len(storage.tensors) for storage in rest)
        said = f"in {count(len(rest), 'smaller storage')} with {count(tensors, 'tensor')}"
        yield f"{size(nbytes):>{SIZE}}{' ' * columns.times}  {said}"


def _grouped(storages: Iterable[Storage]) -> list[_Row]:
    """Layers of one network make one row: `model.h.*.weight`."""
    rows: dict[object, _Row] = {}
    for storage in storages:
        if not _is_filled(storage):
            rows[id(storage)] = _Row("", [storage])
            continue
        tensor = storage.tensors[0]
        name = _DIGITS.sub("*", _names(tensor))
        key = (name, storage.nbytes, storage.device, storage.notes, _shape(tensor), tensor.kind, tensor.notes)
        rows.setdefault(key, _Row(name, [])).storages.append(storage)
    return list(rows.values())


def _is_filled(storage: Storage) -> bool:
    """Whether one tensor fills it, and there is nothing to draw."""
    return len(storage.tensors) == 1 and not storage.dead_nbytes and storage.covered.exact


class _Columns:
    """The widths of names and of shapes, so that rows stand under each other."""

    def __init__(self, rows: Sequence[_Row], width: int) -> None:
        self.most_name = max(20, width - 50)
        listed = [(row, tensor) for row in rows for tensor in row.first.tensors[:MOST_TENSORS]]
        self.name = max(
            (cells(self.cut(self.said(row, one))) + self.lead(row) for row, one in listed), default=0
        )
        self.shape = max((cells(_shape(one)) for _, one in listed), default=0)
        most = max((len(row.storages) for row in rows), default=1)
        self.times = len(f" × {most}") if most > 1 else 0

    def said(self, row: _Row, tensor: NamedTensor) -> str:
        return row.name if len(row.storages) > 1 else _names(tensor)

    def cut(self, name: str) -> str:
        return shortened(name, self.most_name)

    def lead(self, row: _Row) -> int:
        return 0 if _is_filled(row.first) else 2

    def line(self, row: _Row, tensor: NamedTensor, *more: str) -> str:
        name = self.cut(self.said(row, tensor))
        pad = " " * (self.name - self.lead(row) - cells(name))
        notes = [tensor.kind if tensor.kind != "tensor" else "", *tensor.notes, *more]
        return f"{name}{pad}  {_shape(tensor):<{self.shape}}  {', '.join(note for note in notes if note)}"


def _names(tensor: NamedTensor) -> str:
    return " = ".join(tensor.names) if tensor.names else "(no name)"


def _shape(tensor: NamedTensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}"


def _row(row: _Row, columns: _Columns, width: int, blocks: Blocks) -> Iterator[str]:
    """One line where one tensor fills it; else the storage to scale, and its tensors under it."""
    storage = row.first
    times = f" × {len(row.storages)}" if len(row.storages) > 1 else ""
    start = f"{size(storage.nbytes):>{SIZE}}{times:<{columns.times}}  "
    if _is_filled(storage):
        yield f"{start}{columns.line(row, storage.tensors[0], *_notes(storage))}"
        return
    room = max(10, min(40, width - 60))
    drawn = bar((tensor.extent for tensor in storage.tensors), storage.nbytes, room, blocks)
    least, most = ("", "") if storage.covered.exact else ("at least ", "at most ")
    dead = f"{least}{exact(storage.dead_nbytes)} dead" if storage.dead_nbytes or least else ""
    shared = f"{most}{exact(storage.shared_nbytes)} shared" if storage.shared_nbytes else ""
    yield f"{start}[{drawn}]  {', '.join(part for part in (dead, shared, *_notes(storage)) if part)}"
    yield from _tensors(row, columns, blocks)


def _tensors(row: _Row, columns: _Columns, blocks: Blocks) -> Iterator[str]:
    storage = row.first
    listed = storage.tensors[:MOST_TENSORS]
    left = len(storage.tensors) - len(listed)
    margin = " " * (SIZE + columns.times + 2)
    fork, end = ("├", "└") if blocks is BLOCKS else ("-", "-")
    for place, tensor in enumerate(listed, 1):
        corner = end if place == len(listed) and not left else fork
        where = f"bytes {tensor.extent.start:,} to {tensor.extent.stop:,}"
        yield f"{margin}{corner} {columns.line(row, tensor, where)}"
    if left:
        yield f"{margin}{end} and {left:,} more"


def _notes(storage: Storage) -> list[str]:
    return [*([] if storage.device == "cpu" else [storage.device]), *storage.notes]


def _remarks(memory: MemoryMap, width: int) -> Iterator[str]:
    yield from _remark("kept alive by small views", (_pinned(one) for one in memory.pinned), width)
    ties = [" = ".join(tensor.names) for tensor in memory.ties]
    yield from _remark("one and the same", [*ties, *_same_bytes(memory)], width)
    equal = [" = ".join(group) for group in memory.duplicates]
    yield from _remark("equal content, stored apart", equal, width)
    yield from _remark("not seen", memory.not_seen, width)


def _remark(heading: str, items: Iterable[str], width: int) -> Iterator[str]:
    listed = list(items)
    if not listed:
        return
    yield ""
    yield f"{heading}:"
    for item in listed[:MOST_REMARKS]:
        yield f"{INDENT}{shortened(item, width - 2)}"
    if len(listed) > MOST_REMARKS:
        yield f"{INDENT}and {len(listed) - MOST_REMARKS:,} more"


def _pinned(storage: Storage) -> str:
    names = ", ".join(tensor.name for tensor in storage.tensors[:3])
    more = f" and {len(storage.tensors) - 3:,} more" if len(storage.tensors) > 3 else ""
    least = "" if storage.covered.exact else "at least "
    return f"{least}{exact(storage.dead_nbytes)} of {size(storage.nbytes)} by {names}{more}"


def _same_bytes(memory: MemoryMap) -> Iterator[str]:
    """Different tensors over exactly the same elements."""
    for storage in memory.storages:
        if len(storage.tensors) < 2:
            continue
        together: dict[object, list[str]] = {}
        for tensor in storage.tensors:
            if tensor.extent.numel:
                together.setdefault((tensor.extent, tensor.dtype), []).append(tensor.name)
        yield from (" = ".join(names) for names in together.values() if len(names) > 1)
