"""The options that several commands share."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from tensafe.errors import TensafeError

if TYPE_CHECKING:
    from tensafe.rules._loader import Rule

FORMATS = ("text", "json", "sarif", "github", "grouped", "html")


class Parser(argparse.ArgumentParser):
    """An argument parser that answers a mistake with one line."""

    def __init__(self, command: str, **more: Any) -> None:
        super().__init__(
            prog=f"tensafe {command}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **more,
        )

    def _print_message(self, message: str, file: Any = None) -> None:
        from tensafe.report.terminal import write_text

        write_text(message, file or sys.stdout)

    def error(self, message: str) -> NoReturn:
        raise TensafeError(f"{message}; see `{self.prog} --help`")


def add_output(parser: argparse.ArgumentParser, where: str) -> None:
    """`--format`, `--output`, `--notices`."""
    parser.add_argument("--format", choices=FORMATS, default="text", help="how to tell it (default: text)")
    parser.add_argument("--output", metavar="FILE", help=f"write it to FILE instead of {where}")
    parser.add_argument(
        "--notices", action="store_true", help="show notices too: true, and often meant; else only counted"
    )


def refuse_terminal(output: str | None, stream: TextIO | None) -> None:
    """Raise `TensafeError` where a whole page would run over somebody's terminal, before any work is done."""
    from tensafe.report.terminal import is_terminal

    if not output and is_terminal(stream):
        raise TensafeError("an HTML page is for a browser, and this is a terminal: give --output FILE.html")


def add_rules(parser: argparse.ArgumentParser) -> None:
    """`--select`, `--ignore`."""
    for option, what in (("--select", "only these rules"), ("--ignore", "not these rules")):
        parser.add_argument(
            option,
            metavar="RULES",
            action="append",
            default=[],
            type=_names,
            help=f"{what}: names, codes or code prefixes (TS2), separated by commas",
        )


def rules_of(chosen: argparse.Namespace) -> tuple[Rule, ...]:
    """The rules that `--select` and `--ignore` leave; raises `TensafeError` when there are none."""
    from tensafe.rules._loader import select

    rules = select(flat(chosen.select), flat(chosen.ignore))
    if not rules:
        raise TensafeError("--select and --ignore leave no rule; `tensafe rules` lists them")
    return rules


def flat(lists: list[list[str]]) -> list[str]:
    """`--select A,B --select C` as one list."""
    return [name for names in lists for name in names]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]
