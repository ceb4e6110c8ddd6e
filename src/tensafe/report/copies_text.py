"""The table of `tensafe run --copies`: which line copied how many bytes, how often, and whether it had to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensafe.findings import CopyLine, size
from tensafe.report.characters import loggable
from tensafe.report.places import shown_path
from tensafe.report.style import Line

MOST_ROWS = 25
WORDS = {"": "-", "again": "again: same memory"}


def render(rows: Sequence[CopyLine], root: str) -> Iterator[Line]:
    """The rows by bytes, the largest first, and a line for those that are left out."""
    ordered = sorted(rows, key=lambda row: (-row.nbytes, row.site.path, row.site.line, row.op))
    total, times = sum(row.nbytes for row in rows), sum(row.times for row in rows)
    yield (("copies", "strong"), (f": {size(total)} in {times} calls at {len(rows)} lines", ""))
    if not rows:
        return
    table = [("bytes", "times", "operation", "needed", "line")]
    table += [_cells(row, root) for row in ordered[:MOST_ROWS]]
    widths = [max(len(cells[column]) for cells in table) for column in range(4)]
    for number, cells in enumerate(table):
        nbytes, calls, op, needed, line = cells
        text = (
            f"  {nbytes:>{widths[0]}}  {calls:>{widths[1]}}  {op:<{widths[2]}}  {needed:<{widths[3]}}  {line}"
        )
        yield ((text, "ruler" if number == 0 else ""),)
    rest = ordered[MOST_ROWS:]
    if rest:
        yield ((f"  and {size(sum(row.nbytes for row in rest))} at {len(rest)} more lines", ""),)


def _cells(row: CopyLine, root: str) -> tuple[str, str, str, str, str]:
    op = f"{row.op} (hidden)" if row.hidden else row.op
    line = f"{loggable(shown_path(row.site.path, root))}:{row.site.line}"
    return size(row.nbytes), str(row.times), loggable(op), WORDS.get(row.needed, row.needed), line
