"""The table as a page: `python -m tensafe.ops._pages` writes docs/ops/README.md."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from tensafe.ops import lists
from tensafe.ops.row import Graph, Result, Row
from tensafe.ops.stored import Stored, stored
from tensafe.ops.telling import examples_of, in_one_line, result_of, saves_of

HEAD = """\
# What operations do to memory

Made from torch {version}: from its schemas and derivative formulas, from a list of corrections, and from
running what neither of them tells. A test runs every operation that torch has samples for and compares.
`tensafe ops NAME` tells all that is known of one operation, by any of its spellings.

- **view**: the result looks into the memory of an argument. **copy**: it has memory of its own.
- **saved for backward**: autograd keeps these tensors; a write into one of them before backward is an error.
- **cut**: the result requires no gradient, though an argument did.
"""


def page(table: Stored) -> str:
    """The whole page."""
    rows = [row for row in table.rows() if row.spelled]
    plain = [row for row in rows if row.kind != "form"]
    return "\n".join(
        [
            HEAD.format(version=table.torch_version.partition("+")[0]),
            *_section("Indexing", _examples(row for row in rows if "[" in row.name)),
            *_section(
                "Beside the operations", _examples(r for r in rows if r.kind == "form" and "[" not in r.name)
            ),
            *_section("View or copy, as it comes", _table(filter(lists.either, plain), "when", _when)),
            *_section("Views", _table(filter(lists.views, plain), "looks into", _shared)),
            *_section("In place", _table(filter(_is_writer, plain), "does", in_one_line)),
            *_section("Cut the graph", [_names(filter(_cuts, plain))]),
            *_section("Keep the result for backward", [_names(row for row in plain if _keeps_result(row))]),
            *_section("Keep arguments for backward", _table(filter(_keeps_arguments, plain), "keeps", _kept)),
        ]
    )


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""]


def _table(rows: Iterable[Row], what: str, tell: Callable[[Row], str]) -> list[str]:
    lines = [f"| {_code(_spelling(row))} | {tell(row).replace('|', '/')} |" for row in _public(rows)]
    return [f"| operation | {what} |", "|---|---|", *lines]


def _examples(rows: Iterable[Row]) -> list[str]:
    lines = []
    for row in rows:
        shown = "<br>".join(_code(example) for example in examples_of(row))
        lines.append(f"| {_code(row.name)} | {in_one_line(row)} | {shown} | {row.note} |".replace("\\n", " "))
    return ["| form | result | example | note |", "|---|---|---|---|", *lines]


def _public(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if not row.name.startswith("_")]


def _names(rows: Iterable[Row]) -> str:
    return ", ".join(_code(_spelling(row)) for row in _public(rows))


def _spelling(row: Row) -> str:
    return row.spelled[0] if row.spelled else row.name


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _when(row: Row) -> str:
    return "; ".join(dict.fromkeys(result_of(f) for f in row.groups if f.gives is Result.EITHER))


def _shared(row: Row) -> str:
    return ", ".join("x" if name == "self" else name for name in row.of)


def _is_writer(row: Row) -> bool:
    return bool(row.writes)


def _cuts(row: Row) -> bool:
    return row.graph is Graph.CUT and row.gives in (Result.COPY, Result.VIEW, Result.EITHER)


def _keeps_result(row: Row) -> bool:
    return row.saves == ("result",)


def _keeps_arguments(row: Row) -> bool:
    return bool(row.saves) and not _keeps_result(row)


def _kept(row: Row) -> str:
    return "; or ".join(dict.fromkeys(saves_of(facts).removeprefix("keeps ") for facts in row.groups))


def write_page(folder: Path) -> Path:
    """Write the page of this installation's table."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "README.md"
    target.write_text(page(stored()), encoding="utf-8")
    return target


if __name__ == "__main__":
    print(write_page(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/ops")))
