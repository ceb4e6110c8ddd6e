"""A memory map in a notebook: totals and the largest storages, compact."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tensafe.memory.map import MemoryMap, NamedTensor, Storage
from tensafe.report.html.drawing import is_filled
from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.fragment import code, extent_bar, faint, fragment, listed, row, storage_bar, table
from tensafe.report.html.totals import headline, is_exact, used_nbytes
from tensafe.report.html.wording import count, exact, shape, size

MOST_STORAGES = 12
MOST_TENSORS = 5
MOST_REMARKS = 5
WIDTHS = ("36%", "30%", "20%", "14%")


def memory_fragment(memory: MemoryMap) -> str:
    """What `MemoryMap`s show in a notebook: no script, no id, its own style under one class."""
    largest = sorted(memory.storages, key=lambda storage: -storage.nbytes)
    widest = max((storage.nbytes for storage in memory.storages), default=0)
    rows = [line for storage in largest[:MOST_STORAGES] for line in _lines(storage, widest)]
    head = element("div", element("b", code(memory.title)), " ", faint(headline(memory)), class_="t-head")
    return fragment(head, _totals(memory), table(WIDTHS, rows), _rest(memory), _unseen(memory))


def _totals(memory: MemoryMap) -> Html:
    below, above = ("", "") if is_exact(memory) else ("at least ", "at most ")
    figures = [
        ("stored", memory.stored_nbytes, ""),
        ("used", used_nbytes(memory), above),
        ("shared", memory.shared_nbytes, above),
        ("dead", memory.dead_nbytes, below),
        ("logical", memory.logical_nbytes, ""),
    ]
    return element(
        "div",
        *(
            element("span", faint(name), " ", element("b", bound + size(nbytes)), title=exact(nbytes))
            for name, nbytes, bound in figures
        ),
        class_="t-figures",
    )


def _lines(storage: Storage, widest: int) -> Iterator[Html]:
    if is_filled(storage):
        yield _tensor(storage.tensors[0], storage, widest, inner=False)
        return
    dead = f"{size(storage.dead_nbytes)} dead" if storage.dead_nbytes else ""
    about = " · ".join(part for part in (count(len(storage.tensors), "tensor"), storage.device) if part)
    label = join([code(storage.label), " ", faint(about)])
    yield row(label, storage_bar(storage, widest), faint(dead), size(storage.nbytes), right=1)
    for tensor in islice(storage.tensors, MOST_TENSORS):
        yield _tensor(tensor, storage, widest, inner=True)
    left = len(storage.tensors) - MOST_TENSORS
    if left > 0:
        yield row(faint(f"and {count(left, 'other')}"), "", "", "", inner=True)


def _tensor(tensor: NamedTensor, storage: Storage, widest: int, inner: bool) -> Html:
    more = len(tensor.names) - 1
    about = [f"and {count(more, 'other name')}"] if more else []
    if not inner and storage.device != "cpu":
        about.append(storage.device)
    name = join([code(tensor.name), " ", faint(" · ".join(about))])
    drawn = extent_bar(tensor.extent, tensor.kind, storage.nbytes, widest)
    form = join([element("span", shape(tensor.shape), class_="t-code"), " ", faint(tensor.dtype)])
    return row(name, drawn, form, size(tensor.nbytes), right=1, inner=inner)


def _rest(memory: MemoryMap) -> Html:
    left = len(memory.storages) - MOST_STORAGES
    if left <= 0:
        return Html("")
    words = f"and {count(left, 'smaller storage')}; save_html(path) draws all of them"
    return element("div", words, class_="t-faint")


def _unseen(memory: MemoryMap) -> Html:
    if not memory.not_seen:
        return Html("")
    return element("div", faint("Not seen:"), listed(map(code, memory.not_seen), MOST_REMARKS))
