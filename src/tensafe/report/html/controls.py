"""Filter, sort order and scale of the drawing, hidden until the script is there to serve them."""

from __future__ import annotations

from collections import Counter

from tensafe.memory.map import MemoryMap
from tensafe.report.html.elements import Html, element, join, void
from tensafe.report.html.totals import swatch
from tensafe.report.html.wording import size

KINDS = ("parameter", "gradient", "optimizer state", "buffer", "tensor", "array")
"""In the order of the legend; a kind that is not here is drawn as a plain tensor."""


def controls(memory: MemoryMap) -> Html:
    """The bar of controls, the legend and the empty grid that the script fills."""
    return element(
        "section",
        _form(),
        _legend(memory),
        _grid(),
        id="drawing",
        hidden=True,
        aria_label="Storages, drawn to scale",
    )


def _form() -> Html:
    search = void(
        "input",
        type="search",
        id="query",
        placeholder="Filter by name",
        autocomplete="off",
        spellcheck="false",
        aria_label="Filter by name",
        aria_keyshortcuts="/",
    )
    boxes = [_box("shares", "shares bytes"), _box("dead", "has dead bytes"), _box("tied", "several names")]
    orders = [("size", "size"), ("dead", "dead bytes"), ("name", "name")]
    scales = [("common", "one for all"), ("own", "each its own")]
    return element(
        "form",
        search,
        element("span", *boxes, class_="boxes", role="group", aria_label="Only storages that"),
        _choice("order", "Sort by", orders),
        _choice("scale", "Scale", scales),
        class_="controls",
        role="search",
    )


def _box(name: str, label: str) -> Html:
    return element("label", void("input", type="checkbox", id=name), " ", label)


def _choice(name: str, label: str, options: list[tuple[str, str]]) -> Html:
    listed = [element("option", words, value=value) for value, words in options]
    return element("label", label, " ", element("select", *listed, id=name))


def _legend(memory: MemoryMap) -> Html:
    by_kind: Counter[str] = Counter()
    for storage in memory.storages:
        for tensor in storage.tensors:
            by_kind[kind_class(tensor.kind)] += 0 if storage.device == "meta" else tensor.nbytes
    kinds = [_key(kind, f"{kind} {size(by_kind[kind])}") for kind in KINDS if kind in by_kind]
    extents = [tensor.extent for storage in memory.storages for tensor in storage.tensors]
    states = [
        _key("many", "two or more tensors")
        if any(storage.shared_nbytes for storage in memory.storages)
        else "",
        _key("dead", "dead") if any(storage.dead_nbytes for storage in memory.storages) else "",
        _key("mixed", "finely strided") if not all(extent.is_dense for extent in extents) else "",
    ]
    return element("ul", *kinds, *states, class_="legend", aria_label="Legend")


def kind_class(kind: str) -> str:
    return kind if kind in KINDS else "tensor"


def _key(kind: str, words: str) -> Html:
    return element("li", swatch(kind), " ", words)


def _grid() -> Html:
    heads = [("name", "Name"), ("draw", ""), ("shape", "Shape"), ("size", "Size"), ("dead", "Dead")]
    cells = [element("div", head, role="columnheader", class_=f"cell {name}") for name, head in heads]
    header = element(
        "div", element("div", *cells, role="row", class_="line heads"), role="rowgroup", class_="sticky"
    )
    rows = element("div", role="rowgroup", id="rows")
    label = "Storages and the tensors in them"
    grid = element("div", header, rows, role="treegrid", id="grid", aria_label=label)
    count = element("output", id="count", role="status", aria_live="polite")
    status = element("p", count, element("span", id="scale-words"), class_="status faint")
    return join([status, grid, element("button", "Show more", type="button", id="more", hidden=True)])
