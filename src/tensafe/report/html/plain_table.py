"""The map as a table that needs no script: the largest storages, and what lies in them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tensafe.memory.map import MemoryMap, NamedTensor, Storage
from tensafe.report.html.drawing import MIXED, USED, is_filled, marks_of, segments_of
from tensafe.report.html.elements import Html, element
from tensafe.report.html.remarks import name_of
from tensafe.report.html.totals import stretch
from tensafe.report.html.wording import count, exact, kept_words, percent, reached_words, shape, size

MOST_LINES = 200
MOST_STRETCHES = 200
NAME_CHARACTERS = 160
HEADS = ("Name", "Drawn to scale", "Shape", "Size", "Dead")

Line = tuple[Storage, NamedTensor | None]


def plain_table(memory: MemoryMap) -> Html:
    """The first `MOST_LINES` lines of the drawing; a script that runs takes the table away."""
    widest = max((storage.nbytes for storage in memory.storages), default=0)
    lines = list(islice(_lines(memory), MOST_LINES + 1))
    rows = [_row(storage, tensor, widest) for storage, tensor in lines[:MOST_LINES]]
    words = "The largest first."
    if len(lines) > MOST_LINES:
        words = f"The first {MOST_LINES} lines, the largest first; where scripts may run, all are shown."
    heads = [element("th", head, scope="col") for head in HEADS]
    head = element("thead", element("tr", *heads))
    table = element("table", element("caption", words), head, element("tbody", *rows))
    return element("section", table, id="plain", class_="plain")


def _lines(memory: MemoryMap) -> Iterator[Line]:
    """A storage and then each tensor in it, on one line where a single tensor takes it all."""
    for storage in sorted(memory.storages, key=lambda storage: -storage.nbytes):
        if not is_filled(storage):
            yield storage, None
        for tensor in storage.tensors:
            yield storage, tensor


def _row(storage: Storage, tensor: NamedTensor | None, widest: int) -> Html:
    nbytes = tensor.nbytes if tensor else storage.nbytes
    dead = size(storage.dead_nbytes) if tensor is None and storage.dead_nbytes else ""
    level = "root" if tensor is None or is_filled(storage) else "leaf"
    return element(
        "tr",
        element("th", *_heading(storage, tensor), scope="row", class_=level),
        element("td", _drawn(storage, tensor, widest)),
        element("td", f"{shape(tensor.shape)} {tensor.dtype}" if tensor else storage.device),
        element("td", size(nbytes), class_="figure", title=exact(nbytes)),
        element("td", dead, class_="figure"),
    )


def _heading(storage: Storage, tensor: NamedTensor | None) -> list[Html]:
    if tensor is None:
        tail = f" {count(len(storage.tensors), 'tensor')}"
        return [name_of(storage.label, NAME_CHARACTERS), element("span", tail, class_="faint")]
    more = len(tensor.names) - 1
    tail = f" and {count(more, 'other name')}" if more else ""
    return [name_of(tensor.name, NAME_CHARACTERS), element("span", tail, class_="faint")]


def _drawn(storage: Storage, tensor: NamedTensor | None, widest: int) -> Html:
    """On the scale of the widest storage; no bar is narrower than two pixels."""
    pieces = _pieces(storage, tensor)
    if len(pieces) > MOST_STRETCHES:
        pieces = [(MIXED, pieces[0][1], pieces[-1][2])]
    stretches = [stretch(kind, start, stop - start, storage.nbytes) for kind, start, stop in pieces]
    words = kept_words(storage) if tensor is None else reached_words(tensor.extent, storage.nbytes)
    width = percent(storage.nbytes, widest)
    bar = element("svg", *stretches, class_="bar", width=width, height="12", role="img", aria_label=words)
    return element("div", bar, class_="track")


def _pieces(storage: Storage, tensor: NamedTensor | None) -> list[tuple[str, int, int]]:
    if tensor is None:
        return [(piece.kind, piece.start, piece.stop) for piece in segments_of(storage)]
    marks = marks_of(tensor.extent, storage.nbytes)
    return [(MIXED if marks.fine else USED, start, stop) for start, stop in marks.runs]
