"""One door for the formats that are plain text from end to end."""

from __future__ import annotations

from collections.abc import Sequence

from tensafe.findings import Record
from tensafe.report import github, json, sarif, text
from tensafe.report.sarif import RuleText
from tensafe.report.style import plain
from tensafe.report.text import View


def render(record: Record, format: str, view: View, rules: Sequence[RuleText] = ()) -> str:
    """The record in one of the formats `text`, `json`, `github`, `sarif`."""
    if format == "json":
        return json.render(record)
    if format == "github":
        return github.render(record, view.root, view.notices)
    if format == "sarif":
        return sarif.render(record, rules, view.root, view.notices)
    return plain(text.render(record, view)) or f"tensafe: {text.closing(record, view)}\n"
