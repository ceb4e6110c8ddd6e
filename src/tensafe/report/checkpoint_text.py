"""A checkpoint as text: what is stored, what loading it would run, what is dead, shared, large."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensafe.memory.map import MemoryMap, NamedTensor, Storage
from tensafe.report.bar import BLOCKS, Blocks, bar
from tensafe.report.characters import cells, printable
from tensafe.report.html.wording import count, shape, shortened, size
from tensafe.report.style import Line, Style

LARGEST_SHOWN = 20
MOST_ROWS = 10
MOST_NAMES = 6
LONGEST_NAME = 60
BAR_CELLS = 16
MOST_DRAWN = 1_000  # tensors of a storage that its drawing shows

Import = tuple[str, int, str, bool]
"""A name that loading would import: how often, what that means, whether it is dangerous."""


@dataclass(frozen=True)
class CheckpointView:
    """What is told beside the map, and how much of it."""

    imports: Sequence[Import] = ()  # the dangerous ones first
    harmless: Sequence[Import] = ()
    refusals: Sequence[str] = ()  # why weights_only=True would refuse the file
    is_for_torch: bool = False
    files: Sequence[tuple[str, str, int, int]] = ()  # of a folder: name, format, bytes stored, bytes dead
    all: bool = False
    globals: bool = False
    remarks: Sequence[str] = ()
    blocks: Blocks = BLOCKS


def render(memory: MemoryMap, view: CheckpointView) -> Iterator[Line]:
    """The summary, then a section for each thing worth saying, then the largest tensors."""
    yield from _summary(memory, view)
    yield from _files(view)
    yield from _imports(view)
    yield from _section("noted", [(_text(words),) for words in memory.not_seen], "error", view)
    yield from _dead(memory, view)
    yield from _sharing(memory, view)
    yield from _section(
        "equal content in different bytes", [_names(names) for names in memory.duplicates], "", view
    )
    yield from _tensors(memory, view)
    for words in view.remarks:
        yield ()
        yield (_text(words),)


def _summary(memory: MemoryMap, view: CheckpointView) -> Iterator[Line]:
    names = sum(len(tensor.names) for storage in memory.storages for tensor in storage.tensors)
    tensors = count(memory.tensor_count, "tensor")
    if names > memory.tensor_count:
        tensors += f" under {count(names, 'name')}"
    dead = memory.dead_nbytes
    used = memory.stored_nbytes - dead
    kind = memory.facts.get("format", "")
    words = f": {kind}, {tensors}, {size(memory.stored_nbytes)} stored, {size(used)} used"
    dead_words = f", {size(dead)} dead ({_share(dead, memory.stored_nbytes)})" if dead else ", nothing dead"
    style: Style = "warning" if dead * 2 > memory.stored_nbytes else ""
    yield ((printable(memory.title), "strong"), _text(words), (dead_words, style))


def _share(part: int, whole: int) -> str:
    """`12%`; never 100% for less than all."""
    return ">99%" if 199 * whole <= 200 * part < 200 * whole else f"{part / whole:.0%}"


def _files(view: CheckpointView) -> Iterator[Line]:
    rows = [
        (name, what, f"{size(stored)} stored", f"{size(dead)} dead" if dead else "")
        for name, what, stored, dead in view.files
    ]
    yield from _table("files", rows, view)


def _imports(view: CheckpointView) -> Iterator[Line]:
    rows = [(name, f"{times} ×", meaning) for name, times, meaning, dangerous in view.imports if dangerous]
    yield from _table("dangerous: loading it as a pickle runs", rows, view, "error")
    others = [
        (name, f"{times} ×", meaning) for name, times, meaning, dangerous in view.imports if not dangerous
    ]
    yield from _table("loading it imports code", others, view)
    if view.globals:
        harmless = [(name, f"{times} ×", meaning) for name, times, meaning, _ in view.harmless]
        yield from _table("loading it imports also", harmless, view)
    if view.is_for_torch and (view.refusals or view.globals):
        first, more = (*view.refusals, "")[0], len(view.refusals) - 1
        why = f"refuses it: {first}" + (f", and {count(more, 'other reason')}" if more > 0 else "")
        yield ()
        yield (("torch.load(weights_only=True) ", ""), _text(why if view.refusals else "takes it"))


def _dead(memory: MemoryMap, view: CheckpointView) -> Iterator[Line]:
    wasteful = sorted((s for s in memory.storages if s.dead_nbytes and s.device != "meta"), key=_deadness)
    title = f"dead bytes, stored for nobody: {size(memory.dead_nbytes)} in {count(len(wasteful), 'record')}"
    shown = wasteful if view.all else wasteful[:MOST_ROWS]
    rows = [
        (
            s.label,
            _drawn(s, view),
            f"{size(s.dead_nbytes)} of {size(s.nbytes)}",
            f"kept by {_keepers(s)}" if s.tensors else ", ".join(s.notes),
        )
        for s in shown
    ]
    yield from _table(title, rows, view, "warning", total=len(wasteful))
    if wasteful and view.is_for_torch and not view.remarks:
        yield (("  --compact OUT writes the file without them", ""),)


def _drawn(storage: Storage, view: CheckpointView) -> str:
    extents = [tensor.extent for tensor in storage.tensors[:MOST_DRAWN]]
    return bar(extents, storage.nbytes, BAR_CELLS, view.blocks)


def _deadness(storage: Storage) -> int:
    return -storage.dead_nbytes


def _keepers(storage: Storage) -> str:
    largest = sorted(storage.tensors, key=lambda tensor: -tensor.nbytes)
    first = f"{_name(largest[0])} {largest[0].dtype} ({shape(largest[0].shape)})"
    others = len(largest) - 1
    return first + (f" and {count(others, 'other')}" if others else "")


def _sharing(memory: MemoryMap, view: CheckpointView) -> Iterator[Line]:
    shared = [storage for storage in memory.storages if storage.shared_nbytes]
    shared.sort(key=lambda storage: -storage.shared_nbytes)
    rows = [(s.label, size(s.shared_nbytes), _listed([_name(t) for t in s.tensors])) for s in shared]
    yield from _table("tensors that share bytes", rows, view)
    ties = [("=", _listed(tensor.names)) for tensor in memory.ties]
    yield from _table("one tensor under several names", [(names,) for _, names in ties], view)


Place = tuple[NamedTensor, Storage]


def _tensors(memory: MemoryMap, view: CheckpointView) -> Iterator[Line]:
    found = [(tensor, storage) for storage in memory.storages for tensor in storage.tensors]
    groups = [[place] for place in found] if view.all else _alike(found)
    groups.sort(key=lambda group: -sum(tensor.nbytes for tensor, _ in group))
    shown = groups if view.all else groups[:LARGEST_SHOWN]
    number = sum(map(len, shown))
    title = "tensors" if number == len(found) else f"the largest {number:,} of {count(len(found), 'tensor')}"
    if number > len(shown):
        title += ", those of alike layers together"
    yield from _table(title, [_tensor(group) for group in shown], view, most=len(shown))
    if len(shown) < len(groups):
        yield (("  --all lists all", ""),)


def _alike(found: Sequence[Place]) -> list[list[Place]]:
    """Tensors whose names differ in numbers only: those of the layers of one network."""
    groups: dict[object, list[Place]] = {}
    for tensor, storage in found:
        name = re.sub(r"\d+", "*", tensor.name)
        key = (name, tensor.dtype, tensor.shape, tensor.strides, tensor.kind, tensor.notes, storage.device)
        groups.setdefault(key, []).append((tensor, storage))
    return list(groups.values())


def _tensor(group: Sequence[Place]) -> tuple[str, ...]:
    tensor, storage = group[0]
    name, nbytes = _name(tensor), size(tensor.nbytes)
    label = storage.label if storage.label not in tensor.names else ""
    if len(group) > 1:
        name = shortened(re.sub(r"\d+", "*", tensor.name), LONGEST_NAME)
        nbytes = f"{len(group):,} × {nbytes}"
        records = {storage.label for _, storage in group}
        label = count(len(records), "record") if len(records) > 1 else label
    return (name, f"{tensor.dtype} ({shape(tensor.shape)})", nbytes, label, _remarks(tensor, storage))


def _remarks(tensor: NamedTensor, storage: Storage) -> str:
    kind = (tensor.kind,) if tensor.kind != "tensor" else ()
    layout = () if tensor.extent.is_contiguous else (f"stride ({', '.join(map(str, tensor.strides))})",)
    device = (storage.device,) if storage.device != "cpu" else ()
    return ", ".join((*kind, *layout, *device, *tensor.notes))


def _table(
    title: str,
    rows: Sequence[tuple[str, ...]],
    view: CheckpointView,
    style: Style = "",
    most: int = MOST_ROWS,
    total: int | None = None,
) -> Iterator[Line]:
    """Columns as wide as their widest cell, the last one free."""
    if not rows:
        return
    shown = rows if view.all else rows[:most]
    cleaned = [
        [shortened(printable(cell), LONGEST_NAME) for cell in row[:-1]] + [printable(row[-1])]
        for row in shown
    ]
    widths = [max(cells(cell) for cell in column) for column in zip(*cleaned, strict=True)]
    lines = []
    for row in cleaned:
        padded = [cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append((_text("  ".join(padded)),))
    yield from _section(title, lines, style, view, total or len(rows))


def _section(
    title: str, lines: Sequence[Line], style: Style, view: CheckpointView, total: int | None = None
) -> Iterator[Line]:
    if not lines:
        return
    shown = lines if view.all or total is not None else lines[:MOST_ROWS]
    left = (total or len(lines)) - len(shown)
    yield ()
    yield ((title, style or "strong"),)
    for line in shown:
        yield (("  ", ""), *line)
    if left:
        yield ((f"  and {left:,} more, shown with --all", ""),)


def _names(names: Sequence[str]) -> Line:
    return (_text(_listed(names)),)


def _listed(names: Sequence[str]) -> str:
    shown = [shortened(name, LONGEST_NAME) for name in names[:MOST_NAMES]]
    left = len(names) - len(shown)
    return ", ".join(shown) + (f" and {left:,} more" if left else "")


def _name(tensor: NamedTensor) -> str:
    return shortened(tensor.name, LONGEST_NAME)


def _text(words: str) -> tuple[str, Style]:
    return printable(words), ""
