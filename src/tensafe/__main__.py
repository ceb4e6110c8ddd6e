"""The command `tensafe`, also as `python -m tensafe`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command; the exit status: 0 clean, 1 findings, 2 could not run."""
    from tensafe.cli.commands import carry_out

    return carry_out(sys.argv[1:] if argv is None else list(argv))


if __name__ == "__main__":
    sys.exit(main())
