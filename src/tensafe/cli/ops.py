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
    from tensafe.ops.reading import Reading
    from tensafe.ops.row import Row
    from tensafe.ops.stored import Stored
    from tensafe.report.style import Line

EPILOG = """\
NAME is any spelling: reshape, Tensor.reshape, torch.reshape, F.relu, aten::add_.Tensor, 'x[mask]', '+=', .T;
or several operations in turn: 'x.detach().clone()', 'x[mask].zero_()', 'x.data[0] = 1'.
Of several lists, what is in any of them is listed.
"""
LISTS = {
    "views": "results that look into an argument's memory",
    "in_place": "operations that write an argument",
    "either": "results that are a view or a copy, and when",
    "cuts": "operations whose result leaves the graph",
}


def carry_out(argv: Sequence[str]) -> int:
    """Print what the named operation does, or one line for each operation of a list."""
    chosen = _parser().parse_args(_names_last(argv))
    from tensafe.ops.stored import stored

    table = stored()
    output = _output(chosen)
    if chosen.name is not None:
        _tell(_named(chosen.name, table, chosen.format == "json"), output)
        return 0
    rows = [row for row in table.rows() if row.spelled and _is_listed(row, chosen)]
    _tell(_json(rows) if chosen.format == "json" else _list(rows), output)
    return 0


def _names_last(argv: Sequence[str]) -> list[str]:
    """`-x` is an operation, and no option: names come last, behind `--`."""
    end = list(argv).index("--") if "--" in argv else len(argv)
    names = [one for one in argv[:end] if one.startswith("-") and not one.startswith("--") and one != "-h"]
    options = [one for one in argv[:end] if one not in names]
    names += argv[end + 1 :]
    return [*options, "--", *names] if names else options


def _named(text: str, table: Stored, as_json: bool) -> str | list[Line]:
    """What the operation does; of several in turn each, and what they do in all."""
    from tensafe.ops.chains import in_all
    from tensafe.ops.names import row_of, rows_named, steps_of

    rows = [table[name] for name in rows_named(text, table)]
    reading = steps_of(text, table)
    if reading is None or len(reading.steps) < 2 or text.strip() in rows[0].spelled:
        return _json(rows) if as_json else _pages(rows)
    rows = [table[row_of(step, table)] for step in reading.steps]
    words = in_all(reading, rows).words()
    return _json_chain(text, words, reading, rows) if as_json else _chain(text, words, reading, rows)


def _chain(text: str, words: str, reading: Reading, rows: Sequence[Row]) -> list[Line]:
    from tensafe.ops.telling import in_one_line

    width = max(len("in all"), *(len(step.text) for step in reading.steps)) + 2
    lines: list[Line] = [((text.strip(), "strong"),)]
    for step, row in zip(reading.steps, rows, strict=True):
        lines.append(((f"  {step.text:{width}}", "ruler"), (in_one_line(row), "")))
    lines.append(((f"  {'in all':{width}}", "ruler"), (words, "strong")))
    return [*lines, (("  each step in full: tensafe ops NAME", "notice"),)]


def _json_chain(text: str, words: str, reading: Reading, rows: Sequence[Row]) -> str:
    from tensafe.ops.row import to_data

    steps = [{"step": step.text, "row": to_data(row)} for step, row in zip(reading.steps, rows, strict=True)]
    data = {"expression": text.strip(), "in_all": words, "steps": steps}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _parser() -> argparse.ArgumentParser:
    parser = Parser("ops", description="What an operation does to memory and to the graph.", epilog=EPILOG)
    parser.add_argument("name", metavar="NAME", nargs="?", help="the operation; without it, all are listed")
    for name, what in LISTS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=f"list {what}")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="how to tell it (default: text)"
    )
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
    return not wanted or any(holds(row) for holds in wanted)


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
