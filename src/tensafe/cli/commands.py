"""The list of commands, the general help, and how an error ends a command."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from tensafe.errors import TensafeError

COMMANDS = {
    "run": "run a program and name the lines that spoil its tensors",
    "check": "find such lines in source files, and fix them",
    "inspect": "which tensors of a checkpoint share bytes, and how many bytes are dead",
    "ops": "what an operation does to memory: view or copy, what it writes",
    "explain": "what a rule reports, why, and what to write instead",
    "rules": "list all rules",
    "report": "show a recorded run again",
    "tour": "the guides' techniques, run live, with what happens to memory and graph",
    "lsp": "the language server, for editors",
}
HELP = """\
usage: tensafe COMMAND ...

Who shares this tensor's memory, and who wrote to it?

{commands}

  tensafe run train.py --epochs 1      the program as it is; what was found comes at the end
  tensafe check src/ --fix             the source, without running it
  tensafe inspect model.pt             what is stored, shared, dead; no pickle is executed
  tensafe ops reshape                  view or copy, and when
  tensafe explain saved-tensor-modified

`tensafe COMMAND --help` says more.
Exit status: 0 clean, 1 findings, 2 could not run; `run` keeps the program's own unless --strict.
"""


def carry_out(argv: Sequence[str]) -> int:
    """Carry out the command that these arguments ask for."""
    try:
        return _dispatch(argv[0], argv[1:]) if argv else _say(_help())
    except TensafeError as error:
        _settle()
        from tensafe.cli.outlet import complain

        complain(error)
        return 2
    except BrokenPipeError:  # the reader left (`| head`): nothing more to say
        _settle()
        return 1


def _settle() -> None:
    from tensafe.report.terminal import settle

    settle(sys.stdout)


def _say(words: str) -> int:
    from tensafe.report.terminal import write_text

    write_text(words, sys.stdout)
    return 0


def _dispatch(command: str, rest: Sequence[str]) -> int:
    if command in ("-h", "--help", "help"):
        return _say(_help())
    if command in ("-V", "--version"):
        from tensafe import __version__

        return _say(f"tensafe {__version__}\n")
    if command not in COMMANDS:
        raise TensafeError(_unknown(command))
    status: int = importlib.import_module(f"tensafe.cli.{command}").carry_out(rest)
    return status


def _help() -> str:
    commands = "\n".join(f"  {name:8} {what}" for name, what in COMMANDS.items())
    return HELP.format(commands=commands)


def _unknown(command: str) -> str:
    import difflib

    if command.endswith(".py"):
        return f"no command is called {command!r}: did you mean `tensafe run {command}`?"
    near = difflib.get_close_matches(command, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
    return f"no command is called {command!r}: {hint}"
