"""The page of a memory map: totals, remarks, and every storage drawn to scale with the tensors on it."""

from __future__ import annotations

from tensafe.memory.map import MemoryMap
from tensafe.report.html.controls import controls
from tensafe.report.html.document import document
from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.memory_data import memory_data
from tensafe.report.html.plain_table import plain_table
from tensafe.report.html.remarks import remarks
from tensafe.report.html.totals import headline, totals
from tensafe.report.html.wording import shortened

TITLE_CHARACTERS = 120


def memory_page(memory: MemoryMap) -> str:
    """A self-contained page, as UTF-8 text: it makes no request, and escapes every name.

    Without a script it shows the largest 200 lines as a table; with it all, drawn as they scroll into view.
    """
    return map_page(memory, "Memory of")


def map_page(memory: MemoryMap, lead: str, *sections: Html) -> str:
    """The frame that live memory and checkpoints share; `sections` come between totals and drawing."""
    title = shortened(memory.title, TITLE_CHARACTERS)
    heading = element("h1", element("span", f"{lead} ", class_="faint"), element("bdi", title))
    head = element("header", heading, element("p", headline(memory), class_="faint"), class_="top")
    body = element(
        "main",
        head,
        element("section", totals(memory), aria_label="Totals"),
        join(sections),
        remarks(memory),
        element("h2", "Storages"),
        controls(memory),
        plain_table(memory),
    )
    return document(f"{title} · tensafe", join([body, _dock()]), memory_data(memory), "page.js")


def _dock() -> Html:
    """Where the script says everything about the line under the pointer or the focus."""
    return element("aside", id="dock", aria_label="The tensor or storage in focus", hidden=True)
