"""One door for the formats; each is loaded when it is chosen, which is before a program runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tensafe.findings import Record
from tensafe.report import text
from tensafe.report.style import plain
from tensafe.report.text import View

if TYPE_CHECKING:
    from tensafe.report.sarif import RuleText

Render = Callable[[Record, View], str]


def renderer(format: str, rules: Sequence[RuleText] = ()) -> Render:
    """What renders a record in a format of the command line; only SARIF asks for the rules."""
    if format == "json":
        from tensafe.report import json

        return lambda record, view: json.render(record)
    if format == "github":
        from tensafe.report import github

        return lambda record, view: github.render(record, view)
    if format == "sarif":
        from tensafe.report import sarif

        return lambda record, view: sarif.render(record, rules, view)
    if format == "html":
        from tensafe.report.html import run_page

        return run_page
    if format == "grouped":
        from tensafe.report import grouped

        return grouped.render
    return _page


def _page(record: Record, view: View) -> str:
    return plain(text.render(record, view)) or f"tensafe: {text.closing(record, view)}\n"
