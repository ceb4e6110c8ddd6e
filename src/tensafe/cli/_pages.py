"""The command line as Markdown, from what `--help` asks; the documentation site shows it."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from unittest.mock import patch

from tensafe.cli.commands import COMMANDS
from tensafe.cli.options import Parser

HEAD = """\
# Commands

Each command as `tensafe COMMAND --help` tells it; this page is made from the same parsers.

Exit status: 0 clean, 1 findings, 2 could not run. `tensafe run` ends with the program's own status, unless
`--strict`. `tensafe --version` prints the version, plain `tensafe` this list:
"""


class _Asked(Exception):
    """Carries the parser that was asked for help."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser behind `tensafe COMMAND --help`."""

    def stop(parser: Parser) -> None:
        raise _Asked(parser)

    with patch.object(Parser, "print_help", stop):
        try:
            importlib.import_module(f"tensafe.cli.{command}").carry_out(["--help"])
        except _Asked as asked:
            return asked.parser
    raise AssertionError(f"tensafe {command} --help shows no help")


def options_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Arguments and options as they are listed, without `--help`."""
    for action in parser._actions:
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):
            yield action


def page() -> str:
    """The whole page."""
    rows = [f"| [`tensafe {name}`](#tensafe-{name}) | {what} |" for name, what in COMMANDS.items()]
    table = "\n".join(["| command | does |", "|---|---|", *rows])
    return "\n\n".join([HEAD, table, *map(_section, COMMANDS)]) + "\n"


def _section(command: str) -> str:
    parser = parser_of(command)
    parts = [
        f"## tensafe {command}",
        _prose(parser.description),
        f"```text\n{parser.format_usage().strip()}\n```",
        *map(_definition, options_of(parser)),
        _prose(parser.epilog),
    ]
    return "\n\n".join(part for part in parts if part)


def _definition(action: argparse.Action) -> str:
    value = _value(action)
    names = ", ".join(f"`{name}{value}`" for name in action.option_strings) or f"`{value.strip()}`"
    sentences = [f"{_escaped(action.help)}."] if action.help else []
    if action.choices:
        sentences.append(f"One of {', '.join(f'`{one}`' for one in action.choices)}.")
    return f"{names}\n:   {' '.join(sentences) or 'What to show.'}"


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    name = action.metavar or action.dest.upper()
    return f" {name if isinstance(name, str) else ' '.join(name)}"


def _prose(text: str | None) -> str:
    return _escaped((text or "").strip())


_PLAIN = str.maketrans({"<": "&lt;", ">": "&gt;", **{mark: f"\\{mark}" for mark in "\\*_[]"}})


def _escaped(text: str) -> str:
    """Words of a terminal in Markdown: what stands in `code` stays, no other mark means anything."""
    parts = text.split("`")
    parts[::2] = [part.translate(_PLAIN) for part in parts[::2]]
    return "`".join(parts)
