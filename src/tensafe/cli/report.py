"""`tensafe report`: a recorded run or check, told again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tensafe.cli.options import Parser, add_output
from tensafe.cli.outlet import Outlet, has_findings
from tensafe.errors import TensafeError

DESCRIPTION = """\
Show a record that `--format json --output RUN.json` wrote. Neither torch nor the program is needed; lines of
source files that are missing or have changed since are left out.
"""
EPILOG = "Exit status: 1 when it holds errors or warnings, else 0."


def carry_out(argv: Sequence[str]) -> int:
    """Read the record and tell it."""
    parser = Parser("report", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("record", metavar="RUN.json")
    add_output(parser, "standard output")
    chosen = parser.parse_args(argv)
    from tensafe.findings import from_json
    from tensafe.rules._loader import catalogue

    path = Path(chosen.record)
    try:
        text, written = path.read_text(encoding="utf-8"), path.stat().st_mtime
    except OSError as error:
        raise TensafeError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise TensafeError(f"cannot read {path}: it is not UTF-8 text") from None
    try:
        record = from_json(text)
    except TensafeError as error:
        raise type(error)(f"{path}: {error}") from None
    rules = catalogue() if chosen.format == "sarif" else ()
    outlet = Outlet(chosen, sys.stdout, rules, since=written, inputs=[path], what="the record to show")
    outlet.tell(record)
    outlet.say_nothing_found(record)
    return int(has_findings(record))
