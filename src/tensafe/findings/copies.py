"""The copies that one line of a program made: a row of the table of `tensafe run --copies`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensafe.facts import Site


@dataclass(frozen=True, slots=True)
class CopyLine:
    """All copies that one operation made at one line."""

    site: Site
    op: str
    times: int
    nbytes: int
    hidden: bool  # the call looks like a view, or like no copy
    needed: str  # "yes", "no", "partly", "again" (the same memory), "" where the run does not show it


def to_json(row: CopyLine) -> dict[str, Any]:
    """As it stands in the record."""
    return {
        "path": row.site.path,
        "line": row.site.line,
        "column": row.site.column,
        "end_line": row.site.end_line or row.site.line,
        "end_column": row.site.end_column,
        "function": row.site.function,
        "op": row.op,
        "times": row.times,
        "nbytes": row.nbytes,
        "hidden": row.hidden,
        "needed": row.needed,
    }


def from_json(data: Mapping[str, Any]) -> CopyLine:
    """Back from the record."""
    site = Site(
        str(data["path"]),
        int(data["line"]),
        int(data["column"]),
        int(data["end_line"]),
        int(data["end_column"]),
        str(data["function"]),
    )
    return CopyLine(
        site,
        str(data["op"]),
        int(data["times"]),
        int(data["nbytes"]),
        bool(data["hidden"]),
        str(data["needed"]),
    )
