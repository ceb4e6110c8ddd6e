"""The tour as text: code with what each line gave, memory to scale, the graph."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tensafe.report.bar import BLOCKS, Blocks, bar
from tensafe.report.characters import cells
from tensafe.report.style import Line
from tensafe.tour.languages import Words
from tensafe.tour.pictures import GraphRow, MemoryRow
from tensafe.tour.stop import Stop
from tensafe.tour.walking import Shown, Taken

WIDTH = 96
BAR_CELLS = 48
MOST_LINES = 12  # of what one line of code printed
PREAMBLE = frozenset(["import torch", "import tensafe"])


def render(taken: Taken, number: str, words: Words, blocks: Blocks = BLOCKS) -> Iterator[Line]:
    """One stop; `number` is `3/22`."""
    stop = taken.stop
    yield ((f"{number}  ", ""), (stop.title, "strong"), (f"  {stop.name}", "notice"))
    verdict = words.stands if stop.holds else words.stands_not
    yield from _paragraph(f"{words.guides}: {stop.says} {verdict}")
    yield ()
    yield from _program(taken.code, words)
    if taken.memory:
        yield ()
        yield ((f"  {words.memory}", "strong"),)
        yield from _memory(taken.memory, words, blocks)
    if taken.graph:
        yield ((f"  {words.graph}", "strong"),)
        width = max(len(row.name) for row in taken.graph)
        for row in taken.graph:
            yield ((f"    {row.name:{width}}  {stands(row, words)}", ""),)
    yield ()
    yield from _paragraph(f"{words.happens}: {stop.happens}")
    yield ()
    yield ((f"  {words.ours}", "strong"),)
    yield from _program(taken.call, words)
    if stop.rules:
        before, after = words.rules.split("{}")
        yield ((f"  {before}", ""), (", ".join(stop.rules), "notice"), (after, ""))
    yield ()


def _paragraph(text: str) -> Iterator[Line]:
    for line in wrapped(text, WIDTH - 2):
        yield ((f"  {line}", ""),)


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most so many terminal columns; what goes on keeps the indentation of its beginning."""
    indent = text[: len(text) - len(text.lstrip(" "))][: width // 2]
    lines = [""]
    for piece in re.findall(r"\s*\S+", text):
        if lines[-1] and cells(lines[-1] + piece) > width:
            lines.append(indent + piece.lstrip())
        else:
            lines[-1] += piece
        while cells(lines[-1]) > width:
            kept = _fitting(lines[-1], width)
            lines[-1:] = [lines[-1][:kept], indent + lines[-1][kept:]]
    return lines


def _fitting(text: str, width: int) -> int:
    """How many characters fit, one at least."""
    room = width
    for at, character in enumerate(text):
        room -= cells(character)
        if room < 0:
            return max(1, at)
    return len(text)


def _program(shown: Sequence[Shown], words: Words) -> Iterator[Line]:
    for one in shown:
        if one.source in PREAMBLE:
            continue
        for line in one.source.splitlines():
            yield ((f"    {line}", ""),)
        if one.gave is not None:
            yield from _gave(one, words)


def _gave(shown: Shown, words: Words) -> Iterator[Line]:
    gave = (shown.gave or "").splitlines()
    for line in [*gave[:MOST_LINES], *(["..."] if len(gave) > MOST_LINES else [])]:
        for piece in wrapped(line, WIDTH - 6):
            yield ((f"      {piece}", "secondary"),)
    if not shown.holds:
        yield ((f"      {words.differs}{shown.claimed}", "warning"),)


def _memory(rows: Sequence[MemoryRow], words: Words, blocks: Blocks) -> Iterator[Line]:
    name_width = max(len(row.name) for row in rows)
    widest = max(row.storage_nbytes for row in rows)
    for row in rows:
        cells = max(1, round(BAR_CELLS * row.storage_nbytes / widest)) if widest else 1
        drawn = bar([row.extent], row.storage_nbytes, cells, blocks)
        padding = " " * (BAR_CELLS - cells)
        said = reach(row, words)
        yield (
            (f"    {row.name:{name_width}}  {row.storage} ", ""),
            (f"[{drawn}]", "primary"),
            (f"{padding} {said}", ""),
        )


def reach(row: MemoryRow, words: Words) -> str:
    """Which bytes of its storage a tensor reaches, in words."""
    extent = row.extent
    return words.reach.format(f"{extent.start:,}", f"{extent.stop:,}", f"{row.storage_nbytes:,}")


def stands(row: GraphRow, words: Words) -> str:
    """Where a tensor stands in the graph, in words."""
    if row.maker:
        return words.made.format(row.maker)
    return words.leaf if row.requires_grad else words.no_graph


def listing(stops: Sequence[Stop]) -> Iterator[Line]:
    """One line for each stop."""
    width = max(len(stop.name) for stop in stops)
    for stop in stops:
        yield ((f"{stop.name:{width}}", "notice"), (f"  {stop.title}", ""))
