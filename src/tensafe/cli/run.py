"""`tensafe run`: the program as it is, and what was found on standard error."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tensafe.cli.options import Parser, add_output, add_rules, rules_of
from tensafe.cli.outlet import Outlet, complain, has_findings
from tensafe.errors import TensafeError
from tensafe.findings import Finding, Record
from tensafe.report.terminal import settle

USAGE = "tensafe run [options] (script.py | -m module) ..."
DESCRIPTION = """\
Run an unmodified program and tell which lines spoil its tensors.

The program gets everything after the script or module; its arguments, standard output, exit status and
traceback are those of plain Python. Findings go to standard error: all at the end, and at once for one
that stops the program. A clean program leaves one line on a terminal and nothing in a pipe; what could
not be watched is always told. Forked and spawned workers are watched too, and the ranks that
`-m torch.distributed.run` starts; their findings come home. With --output the file is kept up to date while
the program runs, so that it survives a crash; a program that RANK and WORLD_SIZE call a rank writes
RUN.rank0.json for RUN.json.
"""
EPILOG = """\
Exit status: the program's own, also by a signal; with --strict 1 when it would be 0 and there are errors or
warnings; 2 when the program could not be started.
"""


def carry_out(argv: Sequence[str]) -> int:
    """Run the program under the runtime engine."""
    options, rest = split(argv)
    parser = _parser()
    chosen = parser.parse_args(options)
    if not rest:
        parser.error("say which script or `-m module` to run")
    rules = rules_of(chosen)
    module = rest[0] == "-m"
    target, arguments = (rest[1], rest[2:]) if module else (rest[0], rest[1:])
    inputs = () if module else (Path(target),)
    chosen.output = _of_this_rank(chosen.output)
    outlet = Outlet(chosen, sys.stderr, rules, since=time.time(), inputs=inputs, what="the program itself")
    from tensafe.run import run_program

    telling = _Telling(outlet, chosen)
    options_of_the_run = (
        ("heal", chosen.heal),
        ("watched", chosen.watch),
        ("copies", chosen.copies),
        ("depth", chosen.depth if chosen.depth != "writers" else ""),
    )
    asked: dict[str, Any] = {name: value for name, value in options_of_the_run if value}
    if chosen.output:
        asked["keep"] = outlet.keep
    status = run_program(
        target, arguments, module=module, rules=rules, tell=telling.tell, tell_now=telling.tell_now, **asked
    )
    return telling.status(status)


def split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our options, and the program with its arguments: `-m NAME ARGS...` or `SCRIPT ARGS...`.

    argparse would take the program's options that look like ours.
    """
    takes_value = {"--format", "--output", "--select", "--ignore", "--watch", "--depth"}
    position = 0
    while position < len(argv):
        word = argv[position]
        if word == "--":
            return list(argv[:position]), list(argv[position + 1 :])
        if word.startswith("-m") and not word.startswith("--"):
            name = [word[2:]] if word != "-m" else []
            rest = ["-m", *name, *argv[position + 1 :]]
            if len(rest) < 2:
                raise TensafeError("argument -m: say which module to run")
            return list(argv[:position]), rest
        if word == "-":
            raise TensafeError("cannot run a program from standard input: give a script or `-m module`")
        if not word.startswith("-"):
            return list(argv[:position]), list(argv[position:])
        position += 2 if word in takes_value else 1
    return list(argv), []


def _of_this_rank(output: str | None) -> str | None:
    """Ranks that a launcher starts alike write a file each: `run.json` becomes `run.rank1.json`."""
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if not output or not rank.isdecimal() or not size.isdecimal() or int(size) < 2:
        return output
    path = Path(output)
    return str(path.with_name(f"{path.stem}.rank{rank}{path.suffix}"))


class _Telling:
    """Keeps the record for the exit status; telling never costs the program its own."""

    def __init__(self, outlet: Outlet, chosen: Namespace) -> None:
        self.outlet = outlet
        self._strict: bool = chosen.strict
        self._record: Record | None = None
        self._failed = False

    def tell_now(self, finding: Finding) -> None:
        with self._harmless():
            self.outlet.tell_now(finding)

    def tell(self, record: Record) -> None:
        self._record = record
        with self._harmless():
            self.outlet.tell(record)
            if self.outlet.stream.isatty():
                self.outlet.say_nothing_found(record)
        if self._failed:
            settle(self.outlet.stream)

    @contextlib.contextmanager
    def _harmless(self) -> Iterator[None]:
        try:
            yield
        except TensafeError as error:
            self._failed = True
            complain(error)
        except (OSError, ValueError):  # the program closed standard error
            self._failed = True

    def status(self, own: int) -> int:
        if not self._strict or own != 0:
            return own
        return 2 if self._failed else int(has_findings(self._record))


def _parser() -> Parser:
    parser = Parser("run", usage=USAGE, description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("-m", metavar="module", help="run a module, as `python -m module` does")
    add_output(parser, "standard error")
    parser.add_argument("--strict", action="store_true", help="exit 1 on errors and warnings")
    parser.add_argument(
        "--heal",
        action="store_true",
        help="give backward the values that were saved, whatever was written since, and go on",
    )
    parser.add_argument(
        "--copies",
        action="store_true",
        help="tell which line copied how many bytes, and whether it had to (slower)",
    )
    parser.add_argument(
        "--depth",
        choices=("writers", "exact"),
        default="writers",
        help="exact: also name writes by C++, in backward, TorchScript and storages (a tiny MLP's step takes "
        "1.8 times as long as plain, a transformer's 1.2, instead of 1.4 and 1.1)",
    )
    parser.add_argument(
        "--watch",
        metavar="NAME",
        action="append",
        default=[],
        help="tell every write into this tensor or module at once, such as model.fc.weight",
    )
    add_rules(parser)
    return parser
