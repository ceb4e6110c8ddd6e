"""Writes the file of a new rule: `python -m tensafe.rules._skeleton some-bad-pattern`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tensafe.errors import TensafeError
from tensafe.rules._loader import catalogue

FOLDER = Path(__file__).parent
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
CURES = (
    "use",
    "prefer",
    "avoid",
    "no",
    "do",
    "dont",
    "should",
    "must",
    "check",
    "fix",
)  # a name states the pattern

TEMPLATE = '''\
"""In one sentence: what is wrong with the line.

## What it does
Reports ...

## Why it matters
...

## Instead
...

## Fix safety
There is no automatic fix.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import Finding
from tensafe.rules import Bad, Good

CODE = "{code}"
SINCE = "{since}"
SEVERITY = "warning"
AT = Kind.DISCARDED  # the moment at which both engines stop and ask; tensafe.facts.Call lists the roles
HELP = """what to write instead, on one line"""

SETUP = """
import torch
x = torch.rand(3)
"""
EXAMPLES = [
    Bad("""
        x.add_(1)  # finds {code}
        """),
    Good(
        """
        y = x.add(1)
        """,
        because="why it is right",
    ),
]


def find(call: Call, history: History) -> Iterator[Finding]:
    yield from ()
'''


def write_rule(name: str, folder: Path = FOLDER) -> Path:
    """Write the file; refuses a name that states no pattern and a rule that exists."""
    refuse_name(name)
    path = folder / f"{name.replace('-', '_')}.py"
    if path.exists():
        raise TensafeError(f"{path} exists: a rule is not overwritten")
    from tensafe import __version__

    since = ".".join(__version__.split(".")[:2])
    path.write_text(TEMPLATE.format(code=next_code(), since=since), encoding="utf-8")
    return path


def refuse_name(name: str) -> None:
    """A rule's name is two words or more and states the bad pattern: it reads after "allow"."""
    if not NAME.fullmatch(name):
        raise TensafeError(
            f"{name!r} is no rule name: small letters and hyphens, two words or more, as in lost-write"
        )
    first = name.partition("-")[0]
    if first in CURES:
        raise TensafeError(f"{name!r} states a cure: name the bad pattern, so that it reads after `allow`")


def next_code() -> str:
    """The code after the last one of the last group; the author moves it to the group it belongs to."""
    taken = {rule.code for rule in catalogue()}
    return next(code for code in (f"TS{number}" for number in range(901, 1000)) if code not in taken)


def main() -> int:
    """The command line of this file."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: python -m tensafe.rules._skeleton some-bad-pattern", file=sys.stderr)
        return 2
    try:
        path = write_rule(sys.argv[1])
    except TensafeError as error:
        print(f"tensafe: {error}", file=sys.stderr)
        return 2
    print(f"{path}: fill in the page, the examples and `find`; then `make test RULE={sys.argv[1]}`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
