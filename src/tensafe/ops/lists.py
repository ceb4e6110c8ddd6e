"""The lists of operations that people ask for, as questions to a row."""

from __future__ import annotations

from tensafe.ops.row import Graph, Result, Row


def views(row: Row) -> bool:
    """Whether the result looks into the memory of an argument, always."""
    return row.gives is Result.VIEW


def in_place(row: Row) -> bool:
    """Whether it writes an argument other than out=."""
    return bool(row.writes)


def either(row: Row) -> bool:
    """Whether the result is a view or a copy, as `when` says."""
    return any(facts.gives is Result.EITHER for facts in row.groups)


def cuts(row: Row) -> bool:
    """Whether the result leaves the graph though an argument is in it."""
    return row.graph is Graph.CUT and row.gives is not Result.NOTHING
