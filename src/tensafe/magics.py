"""`%load_ext tensafe` in IPython and Jupyter: the cell magic `%%tensafe` runs a cell under the engine."""

from __future__ import annotations

import shlex
from typing import Any

from tensafe.errors import TensafeError
from tensafe.guards import Watching, watching

_OPTIONS = ("--select", "--ignore")


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext tensafe`."""

    def tensafe(line: str, cell: str) -> None:
        """Run the cell under tensafe's engine and show what was found.

        %%tensafe [--select RULES] [--ignore RULES]
        """
        from IPython.core.error import UsageError
        from IPython.display import display

        try:
            seen = _watching(line)
        except TensafeError as error:
            raise UsageError(str(error)) from None
        with seen:
            result = shell.run_cell(cell)
        display(seen)  # type: ignore[no-untyped-call,unused-ignore]
        stopped = result.error_before_exec or result.error_in_exec
        if stopped is not None:  # it was shown; the cells below must not run, as they would not without us
            raise UsageError(f"the cell ended with the {type(stopped).__name__} above")

    shell.register_magic_function(tensafe, "cell", "tensafe")


def unload_ipython_extension(shell: Any) -> None:
    """Called by `%unload_ext tensafe`."""
    shell.magics_manager.magics["cell"].pop("tensafe", None)


def _watching(line: str) -> Watching:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise TensafeError(f"%%tensafe {line}: {error}") from None
    chosen = {"select": "", "ignore": ""}
    while words:
        option, _, value = words.pop(0).partition("=")
        if option not in _OPTIONS:
            raise TensafeError(f"%%tensafe knows no {option!r}: there are {' and '.join(_OPTIONS)}")
        if not value and not words:
            raise TensafeError(f"%%tensafe {option}: names of rules are missing")
        chosen[option[2:]] = value or words.pop(0)
    return watching(**chosen)
