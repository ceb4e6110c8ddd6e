"""Reads the stored table, a row at a time: opening it takes about a millisecond, and torch is not needed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensafe.ops.row import Row

PATH = Path(__file__).with_name("table.json")


class Stored:
    """The rows by name, parsed when asked for, and the torch version they were made from."""

    def __init__(self, text: str) -> None:
        head, *lines = text.split("\n")
        self.torch_version: str = json.loads(head + "}}")["torch"]
        self._lines = {line[1 : line.index('"', 1)]: line for line in lines if line.startswith('"')}
        self._rows: dict[str, Row] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, name: object) -> bool:
        return name in self._lines

    def __getitem__(self, name: str) -> Row:
        row = self._rows.get(name)
        if row is None:
            # imported late: the static engine reads rows as plain data, and starts sooner without
            from tensafe.ops.row import row_from

            row = self._rows[name] = row_from(name, self.data(name))
        return row

    def data(self, name: str) -> Mapping[str, Any]:
        """The row as plain data; KeyError when there is none of this name."""
        line = self._lines[name]
        data: dict[str, Any] = json.loads(line[line.index(":", len(name) + 2) + 1 :].rstrip(","))
        return data

    def line(self, name: str) -> str:
        """The row as it stands in the file."""
        return self._lines[name]

    def rows(self) -> list[Row]:
        """Every row, in the table's order."""
        return [self[name] for name in self]


@lru_cache(maxsize=1)
def stored() -> Stored:
    """The table of this installation."""
    return Stored(PATH.read_text(encoding="utf-8"))


def written(rows: Iterable[Row], torch_version: str) -> str:
    """The table as text: JSON, a row on a line, sorted."""
    lines = [f"{json.dumps(row.name)}: {_data(row)}" for row in sorted(rows, key=lambda row: row.name)]
    return f'{{"torch": {json.dumps(torch_version)}, "rows": {{\n' + ",\n".join(lines) + "\n}}\n"


def _data(row: Row) -> str:
    from tensafe.ops.row import to_data

    data = to_data(row)
    del data["name"]
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)
