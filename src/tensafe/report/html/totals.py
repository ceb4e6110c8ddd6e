"""The figures at the top of a memory page, each with the sentence that says what it counts."""

from __future__ import annotations

from tensafe.memory.map import MemoryMap
from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.wording import count, exact, percent, size

SWATCHES = {"used": "used", "shared": "many", "dead": "dead"}
"""The figures that have a colour in the bar below them."""


def is_exact(memory: MemoryMap) -> bool:
    """Whether every storage's union of bytes was counted, not bounded."""
    return all(storage.covered.exact for storage in memory.storages)


def used_nbytes(memory: MemoryMap) -> int:
    return memory.stored_nbytes - memory.dead_nbytes


def headline(memory: MemoryMap) -> str:
    """`"148 tensors in 147 storages"`."""
    return f"{count(memory.tensor_count, 'tensor')} in {count(len(memory.storages), 'storage')}"


def totals(memory: MemoryMap) -> Html:
    """All five, and stored bytes as one bar: reached by one tensor, by more, by none."""
    below, above = ("", "") if is_exact(memory) else ("at least ", "at most ")
    figures = [
        ("Logical", "logical", memory.logical_nbytes, "What the tensors would take, each stored alone.", ""),
        ("Stored", "stored", memory.stored_nbytes, "What all storages take, each counted once.", ""),
        ("Used", "used", used_nbytes(memory), "Bytes that at least one tensor reaches.", above),
        ("Shared", "shared", memory.shared_nbytes, "Bytes that two or more tensors reach.", above),
        ("Dead", "dead", memory.dead_nbytes, "Bytes kept that no tensor listed here reaches.", below),
    ]
    return join([element("dl", *(_figure(*figure) for figure in figures), class_="totals"), _bar(memory)])


def _figure(label: str, key: str, nbytes: int, meaning: str, bound: str) -> Html:
    value = element("data", bound + size(nbytes), value=nbytes, title=exact(nbytes))
    return element(
        "div",
        element("dt", label, swatch(SWATCHES[key]) if key in SWATCHES else ""),
        element("dd", value, class_="figure"),
        element("dd", meaning, class_="meaning"),
        class_=f"total {key}",
    )


def _bar(memory: MemoryMap) -> Html:
    whole = memory.stored_nbytes
    if not whole:
        return Html("")
    shared = min(memory.shared_nbytes, used_nbytes(memory))
    single = used_nbytes(memory) - shared
    words = (
        f"Of {size(whole)} stored: {size(single)} reached by one tensor, {size(shared)} by more, "
        f"{size(memory.dead_nbytes)} by none."
    )
    parts = [("used", 0, single), ("shared", single, shared), ("dead", single + shared, memory.dead_nbytes)]
    stretches = [stretch(*part, whole) for part in parts]
    return element("svg", *stretches, class_="whole", role="img", aria_label=words)


def swatch(kind: str) -> Html:
    """A patch of the colour that a kind of bytes is drawn in."""
    return element("span", class_=f"swatch {kind.split(' ')[0]}", aria_hidden="true")


def stretch(kind: str, start: int, nbytes: int, whole: int) -> Html:
    """One part of a bar that is `whole` bytes wide, in a picture that needs no script and no inline style."""
    if not nbytes:
        return Html("")
    return element("rect", class_=kind, x=percent(start, whole), width=percent(nbytes, whole), height="100%")
