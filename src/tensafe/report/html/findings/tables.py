"""What a record holds beside its findings: copies by line, what was not checked, the summary."""

from __future__ import annotations

from collections.abc import Sequence

from tensafe.findings import CopyLine, NotChecked, Record
from tensafe.report.copies_text import WORDS
from tensafe.report.html.elements import Html, element
from tensafe.report.html.findings.source import Setting, code_at, where
from tensafe.report.html.totals import stretch
from tensafe.report.html.wording import count, exact, shortened, size
from tensafe.report.places import shown_path

MOST_ROWS = 1_000
MOST_CODE = 100
COPY_HEADS = ("Bytes", "To scale", "Calls", "Operation", "Needed", "Line")


def copies(rows: Sequence[CopyLine] | None, setting: Setting) -> Html:
    """The table of `tensafe run --copies`, the most bytes first."""
    if rows is None:
        return Html("")
    ordered = sorted(rows, key=lambda row: (-row.nbytes, row.site.path, row.site.line, row.op))
    total, times = sum(row.nbytes for row in rows), sum(row.times for row in rows)
    said = f"{size(total)} in {count(times, 'call')} at {count(len(rows), 'line')}."
    left = ordered[MOST_ROWS:]
    if left:
        said += f" The first {MOST_ROWS:,}; {size(sum(row.nbytes for row in left))} at the others."
    heads = element("thead", element("tr", *(element("th", head, scope="col") for head in COPY_HEADS)))
    widest = ordered[0].nbytes if ordered else 0
    lines = [_copy(row, widest, setting) for row in ordered[:MOST_ROWS]]
    table = element("table", heads, element("tbody", *lines), class_="copies") if rows else ""
    return _section("copies", "Copies by line", element("p", said, class_="faint"), table)


def _copy(row: CopyLine, widest: int, setting: Setting) -> Html:
    op = [element("code", shortened(row.op, MOST_CODE)), " hidden" if row.hidden else ""]
    code = code_at(row.site, setting, MOST_CODE)
    bar = element("svg", stretch("used", 0, row.nbytes, widest), class_="whole", aria_hidden="true")
    return element(
        "tr",
        element("td", size(row.nbytes), class_="figure", title=exact(row.nbytes)),
        element("td", bar, class_="scale"),
        element("td", f"{row.times:,}", class_="figure"),
        element("td", *op),
        element("td", WORDS.get(row.needed, row.needed)),
        element("td", element("bdi", where(row.site, setting), class_="code"), " ", element("code", code)),
    )


def not_checked(items: Sequence[NotChecked], setting: Setting) -> Html:
    """Every item with its reason."""
    if not items:
        return Html("")
    rows = [
        element(
            "div",
            element("dt", element("bdi", shortened(shown_path(item.what, setting.root), setting.allowance))),
            element("dd", shortened(item.why, setting.allowance)),
        )
        for item in items[:MOST_ROWS]
    ]
    left = len(items) - len(rows)
    rest = element("p", f"and {left:,} more", class_="faint") if left else ""
    return _section("unchecked", "Not checked", element("dl", *rows, class_="unchecked"), rest)


def summary(record: Record, setting: Setting) -> Html:
    """What the engine counted and timed."""
    facts = {"engine": record.engine, "tensafe": record.tool_version, **record.summary}
    rows = [
        element("div", element("dt", _name(name)), element("dd", shortened(_value(value), setting.allowance)))
        for name, value in facts.items()
        if value != ""
    ]
    return _section("summary", "Summary", element("dl", *rows, class_="facts"))


def _name(name: str) -> str:
    return shortened(name.replace("_", " "), MOST_CODE)


def _value(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _section(name: str, title: str, *parts: str) -> Html:
    head = element("h2", title, id=f"{name}-title")
    return element("section", head, *parts, id=name, aria_labelledby=f"{name}-title")
