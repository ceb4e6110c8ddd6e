"""What a memory page says in words: mostly dead storages, ties, duplicates, and what was not seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tensafe.memory.map import MemoryMap, Storage
from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.wording import count, portion, shape, shortened, size

MOST_ITEMS = 200
MOST_NAMES = 12
FEW_ITEMS = 5
MOST_CHARACTERS = 400
MOST_CHARACTERS_ON_HOVER = 20_000


def remarks(memory: MemoryMap) -> Html:
    """One fold for each sort of remark that there is, its number in the heading."""
    few_pinned = len(memory.pinned) <= FEW_ITEMS
    pinned = "More than half of each is reached by no tensor, yet kept as long as the rest."
    tied = "Ties: one tensor, so a write under one name changes the others."
    same = "Different tensors that reach exactly the same elements: views, detach(), an array over a tensor."
    doubled = "Duplicates: the same bytes, stored more than once."
    unseen = "What could not be looked into, and why."
    return join(
        [
            fold("Mostly dead storages", pinned, map(_pinned, memory.pinned), opened=few_pinned),
            fold("Tensors under several names", tied, [_names(tensor.names) for tensor in memory.ties]),
            fold("Several tensors over the same bytes", same, map(_names, same_bytes(memory))),
            fold("Equal content in different memory", doubled, map(_names, memory.duplicates)),
            fold("Not seen", unseen, memory.not_seen, opened=True),
        ]
    )


def same_bytes(memory: MemoryMap) -> Iterator[tuple[str, ...]]:
    """The names of tensors whose extent and dtype are the same."""
    for storage in memory.storages:
        together: dict[object, list[str]] = {}
        for tensor in storage.tensors:
            if tensor.extent.numel:
                together.setdefault((tensor.extent, tensor.dtype), []).append(tensor.name)
        yield from (tuple(names) for names in together.values() if len(names) > 1)


def fold(heading: str, meaning: str, items: Iterable[str], opened: bool = False) -> Html:
    """A list that opens; what is beyond `MOST_ITEMS` is counted. Nothing at all for no items."""
    listed = list(items)
    if not listed:
        return Html("")
    summary = element("summary", heading, " ", element("span", f"{len(listed):,}", class_="number"))
    rows = [element("li", _item(item)) for item in listed[:MOST_ITEMS]]
    left = len(listed) - len(rows)
    rest = element("p", f"and {left:,} more", class_="faint") if left else ""
    lead = element("p", meaning, class_="faint")
    return element("details", summary, lead, element("ul", *rows), rest, class_="fold", open=opened)


def _item(item: str) -> str:
    return item if isinstance(item, Html) else shortened(item, MOST_CHARACTERS)


def name_of(name: str, most: int = MOST_CHARACTERS) -> Html:
    """A tensor's name, its direction apart from that of the text around it; a cut one is whole on hover."""
    short = shortened(name, most)
    hover = shortened(name, MOST_CHARACTERS_ON_HOVER) if short != name else None
    return element("bdi", short, class_="code", title=hover)


def _names(names: Sequence[str]) -> Html:
    listed = [name_of(name) for name in names[:MOST_NAMES]]
    left = len(names) - len(listed)
    parts: list[str] = [part for name in listed for part in (" = ", name)]
    return join([*parts[1:], f" and {left:,} more" if left else ""])


def _pinned(storage: Storage) -> Html:
    share = portion(storage.dead_nbytes, storage.nbytes)
    dead = f": {share} of {size(storage.nbytes)} dead"
    label = name_of(storage.label)
    if not storage.tensors:
        return join([label, dead, ", no tensor in it"])
    largest = max(storage.tensors, key=lambda tensor: tensor.nbytes)
    others = len(storage.tensors) - 1
    tail = f" ({shape(largest.shape)})" + (f" and {count(others, 'other tensor')}" if others else "")
    return join([label, dead, ", kept by ", name_of(largest.name), tail])
