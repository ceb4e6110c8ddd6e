"""`tensafe ops`: what an operation does to memory and to the graph."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensafe.cli.options import Parser

if TYPE_CHECKING:
    from tensafe.ops.row import Row
    from tensafe.report.style import Line

EPILOG = """\
NAME is any spelling: reshape, Tensor.reshape, torch.reshape, F.relu, aten::add_.Tensor, 'x[mask]', '+=', .T
"""
LISTS = {
    "views": "results that look into an argument's memory",
    "in_place": "operations that write an argument",
    "either": "results that are a view or a copy, and when",
    "cuts": "operations whose result leaves the graph",
}


def carry_out(argv: Sequence[str]) -> int:
    """Print what the named operation does, or one line for each operation of a list."""
    chosen = _parser().parse_args(argv)
    from tensafe.ops.stored import stored

    table = stored()
    output = _output(chosen)
    if chosen.name is not None:
        from tensafe.ops.names import rows_named

        rows = [table[name] for name in rows_named(chosen.name, table)]
        _tell(_json(rows) if chosen.format == "json" else _pages(rows), output)
        return 0
    rows = [row for row in table.rows() if row.spelled and _is_listed(row, chosen)]
    _tell(_json(rows) if chosen.format == "json" else _list(rows), output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser("ops", description="What an operation does to memory and to the graph.", epilog=EPILOG)
    parser.add_argument("name", metavar="NAME", nargs="?", help="the operation; without it, all are listed")
    for name, what in LISTS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=f"list {what}")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--output", metavar="FILE", help="write to FILE instead of standard output")
    return parser


def _output(chosen: argparse.Namespace) -> Path | None:
    if chosen.output is None:
        return None
    from tensafe.report import write

    write.refuse_unwritable(Path(chosen.output))
    return Path(chosen.output)


def _is_listed(row: Row, chosen: argparse.Namespace) -> bool:
    from tensafe.ops import lists

    wanted = [getattr(lists, name) for name in LISTS if getattr(chosen, name)]
    return all(holds(row) for holds in wanted)


def _tell(told: str | list[Line], output: Path | None) -> None:
    from tensafe.report import style, terminal, write

    if output is not None:
        text = told if isinstance(told, str) else style.plain(told)
        write.write_whole(output, text.encode("utf-8"))
    elif isinstance(told, str):
        terminal.write_text(told, sys.stdout)
    else:
        terminal.write_lines(told, sys.stdout)


def _json(rows: Iterable[Row]) -> str:
    from tensafe.ops.row import to_data

    data: list[dict[str, Any]] = [to_data(row) for row in rows]
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _pages(rows: Sequence[Row]) -> list[Line]:
    """The likeliest row in full, and where the others are told."""
    from tensafe.ops.telling import examples_of, facts_of, title

    row, *others = rows
    lines: list[Line] = [((title(row), "strong"),)]
    facts = facts_of(row)
    width = max(len(heading) for heading, _ in facts) + 2
    lines += [((f"  {heading:{width}}", "ruler"), (words, "")) for heading, words in facts]
    examples = examples_of(row)
    lines += [(("", ""),), *(((f"    {example}", ""),) for example in examples)] if examples else []
    for other in others:
        spelled = other.spelled[0] if other.spelled else f"aten::{other.name}"
        lines.append(((f"  not to be taken for {spelled}: tensafe ops '{spelled}'", "notice"),))
    return lines


def _list(rows: Sequence[Row]) -> list[Line]:
    from tensafe.ops.telling import in_one_line

    width = min(max((len(row.name) for row in rows), default=0), 28)
    return [((f"{row.name:{width}}  ", "strong"), (in_one_line(row), "")) for row in rows]
