"""`tensafe report`: a recorded run or check, told again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tensafe.cli.options import Parser, add_output
from tensafe.cli.outlet import Outlet, has_findings
from tensafe.errors import TensafeError
from tensafe.findings import Record

DESCRIPTION = """\
Show a record that `--format json --output RUN.json` wrote; several, as the ranks of a distributed run write
them, are shown as one. Neither torch nor the program is needed; lines of source files that are
missing or have changed since are left out.
"""
EPILOG = "Exit status: 1 when it holds errors or warnings, else 0."


def carry_out(argv: Sequence[str]) -> int:
    """Read the record or records and tell them."""
    parser = Parser("report", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("record", metavar="RUN.json", nargs="+")
    add_output(parser, "standard output")
    chosen = parser.parse_args(argv)
    from tensafe.rules._loader import catalogue

    paths = [Path(record) for record in chosen.record]
    read = [_read(path) for path in paths]
    record = read[0][0] if len(read) == 1 else _merged([record for record, _ in read])
    written = min(when for _, when in read)
    rules = catalogue() if chosen.format == "sarif" else ()
    outlet = Outlet(chosen, sys.stdout, rules, since=written, inputs=paths, what="the record to show")
    outlet.tell(record)
    outlet.say_nothing_found(record)
    return int(has_findings(record))


def _read(path: Path) -> tuple[Record, float]:
    """The record in a file, and when it was written."""
    from tensafe.findings import from_json

    try:
        text, written = path.read_text(encoding="utf-8"), path.stat().st_mtime
    except OSError as error:
        raise TensafeError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise TensafeError(f"cannot read {path}: it is not UTF-8 text") from None
    try:
        return from_json(text), written
    except TensafeError as error:
        raise type(error)(f"{path}: {error}") from None


def _merged(records: Sequence[Record]) -> Record:
    from tensafe.findings import Told, merge

    ranks = [record.summary.get("rank") for record in records]
    return merge(
        [
            Told(record, f"rank {rank}", rank) if isinstance(rank, int) else Told(record)
            for record, rank in zip(records, ranks, strict=True)
        ]
    )
