"""What the fragments for notebooks share: the scoped frame, bars, names; no script, either theme."""

from __future__ import annotations

from collections.abc import Iterable

from tensafe.memory.extent import Extent
from tensafe.memory.map import Storage
from tensafe.report.html.assets import asset
from tensafe.report.html.controls import kind_class
from tensafe.report.html.drawing import MIXED, marks_of, segments_of
from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.wording import kept_words, percent, reached_words, shortened

NAME_CHARACTERS = 46
HOVER_CHARACTERS = 2_000
MOST_STRETCHES = 200
OWN = "self"
"""The kind of the tensor that a drawing is about."""

Stretch = tuple[int, int, str]
"""First byte, one past the last, and the classes that colour it."""


def fragment(*parts: str) -> str:
    """A piece of a page under one class, its style sheet in it: what `_repr_html_` gives."""
    return element("div", element("style", Html(asset("fragment.css"))), *parts, class_="tensafe")


def code(name: str, most: int = NAME_CHARACTERS) -> Html:
    """A name as code, its middle left out where it is long; most of it on hover."""
    short = shortened(name, most)
    hover = shortened(name, HOVER_CHARACTERS) if short != name else None
    return element("bdi", short, class_="t-code", title=hover)


def faint(*words: str) -> Html:
    return element("span", *words, class_="t-faint")


def prose(words: str) -> Html:
    """A sentence in which names stand between backquotes, those as code."""
    parts = words.split("`")
    if len(parts) % 2 == 0:  # one without its partner
        return join([words])
    return join(code(part) if at % 2 else part for at, part in enumerate(parts))


def facts(rows: Iterable[tuple[str, str]]) -> Html:
    """Labels and what is said under each, a label once where it repeats."""
    shown, before = [], ""
    for label, words in rows:
        head = element("td", faint("" if label == before else label), class_="t-label")
        shown.append(element("tr", head, element("td", words)))
        before = label
    return element("table", element("tbody", *shown), class_="t-table t-facts")


def listed(items: Iterable[str], most: int, rest: str = "and {:,} more") -> Html:
    """A list of at most so many items, the others counted; nothing for none."""
    entries = list(items)
    if not entries:
        return Html("")
    rows = [element("li", entry) for entry in entries[:most]]
    left = len(entries) - len(rows)
    return element("ul", *rows, element("li", rest.format(left)) if left else "", class_="t-list")


def storage_bar(storage: Storage, widest: int) -> Html:
    """A storage on the scale of the widest one, cut into what is used, shared and dead."""
    stretches = [(piece.start, piece.stop, f"t-{piece.kind}") for piece in segments_of(storage)]
    return bar(stretches, storage.nbytes, widest, kept_words(storage))


def extent_bar(extent: Extent, kind: str, storage_nbytes: int, widest: int) -> Html:
    """One tensor on the bar of its storage."""
    marks = marks_of(extent, storage_nbytes)
    colour = f"t-{kind_class(kind).split(' ')[0]}" if kind != OWN else "t-self"
    classes = f"{colour} t-{MIXED}" if marks.fine else colour
    drawn = [(start, stop, classes) for start, stop in marks.runs]
    return bar(drawn, storage_nbytes, widest, reached_words(extent, storage_nbytes))


def bar(stretches: list[Stretch], nbytes: int, widest: int, words: str = "") -> Html:
    """A bar as wide as its bytes on the scale of the widest; `words` say it to who cannot see it."""
    if len(stretches) > MOST_STRETCHES:
        stretches = [(stretches[0][0], stretches[-1][1], f"t-{MIXED}")]
    marks = [
        element(
            "i", class_=classes, style=f"left:{percent(start, nbytes)};width:{percent(stop - start, nbytes)}"
        )
        for start, stop, classes in stretches
    ]
    width = f"width:{percent(nbytes, widest)}"
    if not words:
        return element("span", *marks, class_="t-bar", style=width, aria_hidden="true")
    return element("span", *marks, class_="t-bar", style=width, role="img", aria_label=words)


def table(widths: Iterable[str], rows: Iterable[Html]) -> Html:
    """A table without lines, its columns of fixed widths."""
    columns = [Html(f'<col style="width:{width}">') for width in widths]
    return element("table", element("colgroup", *columns), element("tbody", *rows), class_="t-table")


def row(*cells: str, right: int = 0, inner: bool = False) -> Html:
    """One line; the last `right` cells hold figures, and `inner` moves the first one in."""
    first = len(cells) - right
    made = [
        element("td", cell, class_="t-right" if at >= first else "t-inner" if inner and not at else None)
        for at, cell in enumerate(cells)
    ]
    return element("tr", join(made))
