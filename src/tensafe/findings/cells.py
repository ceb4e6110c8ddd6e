"""How a cell is named where a path is expected: `look.ipynb:cell 3`."""

from __future__ import annotations

import re

_CELL = re.compile(r"(?P<path>.+\.ipynb):cell (?P<number>\d+)", re.S)


def cell_path(path: str, number: int) -> str:
    """The name of a cell; cells of every kind count, from 1."""
    return f"{path}:cell {number}"


def split_cell(path: str) -> tuple[str, int | None]:
    """The file that a path means, and the number of the cell in it, if it means one."""
    found = _CELL.fullmatch(path)
    return (found["path"], int(found["number"])) if found else (path, None)
