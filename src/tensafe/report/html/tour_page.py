"""The tour as one page that works offline: each stop with its code, its memory to scale, its graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensafe.report.html.assets import asset
from tensafe.report.html.document import document
from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.fragment import OWN, code, extent_bar, faint, prose, row, table
from tensafe.report.tour_text import PREAMBLE, reach, stands
from tensafe.tour.languages import Words
from tensafe.tour.pictures import GraphRow, MemoryRow
from tensafe.tour.walking import Shown, Taken

_SHEETS = ("fragment.css", "tour.css")


def tour_page(taken: Sequence[Taken], words: Words, language: str) -> str:
    """A self-contained page, as UTF-8 text."""
    styles = [element("style", Html(asset(sheet))) for sheet in _SHEETS]
    links = [element("li", element("a", one.stop.title, href=f"#{one.stop.name}")) for one in taken]
    body = element(
        "main",
        *styles,
        element("h1", words.title),
        element("nav", element("ol", *links), aria_label=words.title) if len(taken) > 1 else "",
        *(_section(one, number, words) for number, one in enumerate(taken, 1)),
        class_="tour tensafe",
    )
    return document(
        f"{words.title} · tensafe", body, sheets=[asset(sheet) for sheet in _SHEETS], language=language
    )


def _section(taken: Taken, number: int, words: Words) -> Html:
    stop = taken.stop
    verdict = words.stands if stop.holds else words.stands_not
    place = element("span", f"{number}  ", class_="number")
    return element(
        "section",
        element("h2", element("a", place, stop.title, href=f"#{stop.name}")),
        element("p", faint(f"{words.guides}: "), prose(stop.says), " ", element("strong", verdict)),
        _program(taken.code, words),
        *_memory(taken.memory, words),
        *_graph(taken.graph, words),
        element("h3", words.happens),
        element("p", prose(stop.happens)),
        element("h3", words.ours),
        _program(taken.call, words),
        _rules(stop.rules, words),
        id=stop.name,
    )


def _program(shown: Sequence[Shown], words: Words) -> Html:
    lines: list[str] = []
    for one in shown:
        if one.source in PREAMBLE:
            continue
        lines.append(f"{one.source}\n")
        if one.gave is not None:
            lines += [_gave(line) for line in one.gave.splitlines()]
        if not one.holds:
            expected = _kept([f"  {words.differs}{one.claimed}\n"])
            lines.append(element("span", expected, class_="differs"))
    return element("pre", _kept(lines), tabindex=0)


def _gave(line: str) -> Html:
    return element("span", _kept([f"  {line}\n"]), class_="gave")


def _kept(lines: Sequence[str]) -> Html:
    """Texts whose line ends stay line ends."""
    return join([part if isinstance(part, Html) else _lines(part) for part in lines])


def _lines(text: str) -> Html:
    return Html("\n".join(join([line]) for line in text.split("\n")))


def _memory(rows: Sequence[MemoryRow], words: Words) -> Iterator[Html]:
    if rows:
        widest = max(one.storage_nbytes for one in rows)
        yield element("h3", words.memory)
        yield table(
            ("18%", "5%", "49%", "28%"),
            [
                row(
                    code(one.name),
                    one.storage,
                    extent_bar(one.extent, OWN, one.storage_nbytes, widest),
                    faint(reach(one, words)),
                )
                for one in rows
            ],
        )


def _graph(rows: Sequence[GraphRow], words: Words) -> Iterator[Html]:
    if rows:
        yield element("h3", words.graph)
        yield table(("18%", "82%"), [row(code(one.name), stands(one, words)) for one in rows])


def _rules(names: Sequence[str], words: Words) -> Html:
    if not names:
        return Html("")
    named = [part for name in names for part in (", ", code(name))][1:]
    before, after = words.rules.split("{}")
    return element("p", faint(before), *named, faint(after) if after else "")
