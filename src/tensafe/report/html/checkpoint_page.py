"""The page of a checkpoint: the file's facts, what loading it would import, its storages to scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tensafe.memory.map import MemoryMap
from tensafe.report.html.elements import Html, element
from tensafe.report.html.memory_page import map_page
from tensafe.report.html.remarks import MOST_ITEMS
from tensafe.report.html.wording import shortened

Import = tuple[str, int, str, bool]
"""A global that unpickling would import: name, how often, the verdict in words, whether it is dangerous."""
MOST_CHARACTERS = 300


def checkpoint_page(memory: MemoryMap, globals: Iterable[Import] = (), refusals: Sequence[str] = ()) -> str:
    """A self-contained page like `memory_page`, with the file's facts and imports before the drawing.

    `refusals` says why `torch.load(weights_only=True)` would not take the file.
    """
    return map_page(memory, "Checkpoint", _facts(memory), _imports(list(globals), refusals))


def _facts(memory: MemoryMap) -> Html:
    if not memory.facts:
        return Html("")
    rows = [
        element("div", element("dt", name), element("dd", shortened(fact, MOST_CHARACTERS)))
        for name, fact in memory.facts.items()
    ]
    return element("section", element("h2", "File"), element("dl", *rows, class_="facts"))


def _imports(imports: list[Import], refusals: Sequence[str]) -> Html:
    """The dangerous ones first; nothing for a file that is no pickle."""
    if not imports and not refusals:
        return Html("")
    ordered = sorted(imports, key=lambda item: (not item[3], item[0]))
    heads = [element("th", head, scope="col") for head in ("Global", "Times", "Verdict")]
    body = element("tbody", *(_import(*item) for item in ordered[:MOST_ITEMS]))
    table = element("table", element("thead", element("tr", *heads)), body, class_="imports")
    left = len(imports) - MOST_ITEMS
    rest = element("p", f"and {left:,} more", class_="faint") if left > 0 else ""
    return element("section", element("h2", "Imports"), _lead(imports), _refused(refusals), table, rest)


def _lead(imports: list[Import]) -> Html:
    dangerous = sum(1 for item in imports if item[3])
    words = "Loading this file with pickle would import these."
    if dangerous:
        words += f" {dangerous:,} of them can run code: do not load it unless you trust its author."
    return element("p", words, " tensafe imported none.", class_="danger" if dangerous else "faint")


def _refused(refusals: Sequence[str]) -> Html:
    if not refusals:
        return Html("")
    left = len(refusals) - 1
    more = f", and for {left:,} other reasons" if left > 1 else ", and for one other reason" if left else ""
    words = f" refuses it: {shortened(refusals[0], MOST_CHARACTERS)}{more}."
    return element("p", element("span", "torch.load(weights_only=True)", class_="code"), words)


def _import(name: str, times: int, verdict: str, dangerous: bool) -> Html:
    shown = element("bdi", shortened(name, MOST_CHARACTERS), class_="code")
    return element(
        "tr",
        element("th", shown, scope="row"),
        element("td", f"{times:,}", class_="figure"),
        element("td", shortened(verdict, MOST_CHARACTERS)),
        class_="danger" if dangerous else None,
    )
