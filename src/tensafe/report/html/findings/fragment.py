"""Findings in a notebook: no script, no id, its own style under one class, either theme."""

from __future__ import annotations

from tensafe.findings import Finding, Record
from tensafe.report.html.assets import asset
from tensafe.report.html.elements import Html, element
from tensafe.report.html.findings.card import body, heading
from tensafe.report.html.findings.source import Setting
from tensafe.report.html.wording import count
from tensafe.report.text import View, closing, shown

MOST_FINDINGS = 30
OPENED = 3
MOST_UNSEEN = 20
AROUND = 1


def record_fragment(record: Record, view: View) -> str:
    """What a watched stretch shows: its errors and warnings, the first of them opened."""
    found = shown(record, view.notices)
    setting = Setting(view.sources, view.root, AROUND)
    items = [_item(finding, setting, number < OPENED) for number, finding in enumerate(found[:MOST_FINDINGS])]
    left = len(found) - len(items)
    rest = f"and {count(left, 'more finding')}; seen.findings has them" if left else ""
    head = element("p", element("b", "tensafe: "), closing(record, view), class_="f-head")
    return _framed(
        head, *items, element("p", rest, class_="f-faint") if rest else "", _unseen(record, setting)
    )


def finding_fragment(finding: Finding, view: View) -> str:
    """What one finding shows."""
    return _framed(_item(finding, Setting(view.sources, view.root, AROUND), opened=True))


def _framed(*parts: str) -> Html:
    return element("div", element("style", Html(asset("findings.css"))), *parts, class_="tensafe")


def _item(finding: Finding, setting: Setting, opened: bool) -> Html:
    head = element("summary", *heading(finding, setting, "span"))
    return element("details", head, body(finding, (), setting), class_="f-item", open=opened)


def _unseen(record: Record, setting: Setting) -> Html:
    items = [
        element("li", element("b", item.what[: setting.allowance]), ": ", item.why[: setting.allowance])
        for item in record.not_checked[:MOST_UNSEEN]
    ]
    if not items:
        return Html("")
    left = len(record.not_checked) - len(items)
    more = element("li", f"and {left:,} more") if left else ""
    return element("div", "Not checked:", element("ul", *items, more, class_="f-places"))
