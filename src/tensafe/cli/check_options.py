"""The options of `tensafe check`, and which of them exclude each other."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from tensafe.cli.options import Parser, add_output, add_rules
from tensafe.errors import TensafeError

DESCRIPTION = """\
Find the lines that spoil tensors in Python source and notebooks, without running it and without torch.

Findings go to standard output. `# tensafe: allow NAME` on a line, or alone on the line above, silences it;
`# tensafe: allow-file NAME` on a line of its own silences the file. `[tool.tensafe]` in pyproject.toml
knows select, ignore, per-file-ignores, exclude, severity and unused-allows; options given here win.
"""
EPILOG = """\
Exit status: 0 no errors or warnings (after --fix: none left), 1 some, or a --diff that is not empty,
2 could not check: no such path, no Python files, or none that could be read.
"""


def parsed(argv: Sequence[str]) -> Namespace:
    """The options; raises TensafeError for those that do not go together."""
    chosen = parser().parse_args(argv)
    if not all(chosen.paths):
        raise TensafeError("an empty path: give files or folders")
    if "-" in chosen.paths and len(chosen.paths) > 1:
        raise TensafeError("standard input is checked alone: give `-` and no other path")
    if chosen.stdin_filename and chosen.paths != ["-"]:
        raise TensafeError("--stdin-filename goes with the path `-`")
    if chosen.write_baseline and not chosen.baseline:
        raise TensafeError("--write-baseline goes with --baseline FILE")
    if chosen.config and chosen.isolated:
        raise TensafeError("--config and --isolated exclude each other")
    if chosen.statistics and chosen.format not in ("text", "json"):
        raise TensafeError(f"--statistics has no format {chosen.format}: it has text and json")
    return chosen


def parser() -> Parser:
    """What `tensafe check` understands."""
    parser = Parser("check", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument(
        "paths", metavar="PATHS", nargs="*", default=["."], help="files and folders (default: .); - is stdin"
    )
    _add_fixing(parser)
    add_rules(parser)
    parser.add_argument("--unused-allows", action="store_true", help="report comments that silence nothing")
    add_output(parser, "standard output")
    parser.add_argument("--statistics", action="store_true", help="count by rule instead of showing findings")
    _add_baseline(parser)
    _add_files(parser)
    parser.add_argument("--jobs", type=_jobs, metavar="N", help="how many processes (default: one a core)")
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write the cache")
    return parser


def _add_fixing(parser: Parser) -> None:
    parser.add_argument("--fix", action="store_true", help="apply the safe fixes, until nothing changes")
    parser.add_argument("--unsafe-fixes", action="store_true", help="apply the unsafe ones too")
    parser.add_argument("--diff", action="store_true", help="show what fixes would change, change nothing")


def _add_baseline(parser: Parser) -> None:
    parser.add_argument(
        "--baseline", metavar="FILE", help="leave out the findings that FILE knows; say which of it are gone"
    )
    parser.add_argument(
        "--write-baseline", action="store_true", help="write what is found into the FILE of --baseline"
    )


def _add_files(parser: Parser) -> None:
    parser.add_argument("--config", metavar="FILE", help="read this pyproject.toml, not the nearest one")
    parser.add_argument("--isolated", action="store_true", help="read no pyproject.toml")
    parser.add_argument(
        "--force-exclude", action="store_true", help="leave excluded files out although they are named"
    )
    parser.add_argument(
        "--stdin-filename", metavar="FILE", help="the name of what `-` reads; --fix prints the fixed text"
    )


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise TensafeError(f"argument --jobs: {text!r} is not a positive number")
    return int(text)
