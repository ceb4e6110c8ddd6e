"""A record as the JSON that `tensafe report` reads back."""

from __future__ import annotations

from tensafe.findings import Record, to_json


def render(record: Record) -> str:
    """The whole record, notices included."""
    return to_json(record) + "\n"
