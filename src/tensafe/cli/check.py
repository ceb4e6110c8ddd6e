"""`tensafe check`: the same rules read from source, and their fixes."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from tensafe.cli.options import Parser, add_output, add_rules, rules_of
from tensafe.cli.outlet import Outlet, has_findings
from tensafe.errors import TensafeError
from tensafe.findings import Record

DESCRIPTION = """\
Find the lines that spoil tensors in Python source, without running it and without torch.

Findings go to standard output. `# tensafe: allow NAME` on a line, or alone on the line above, silences it.
"""
EPILOG = """\
Exit status: 0 no errors or warnings (after --fix: none left), 1 some, or a --diff that is not empty,
2 could not check: no such path, no Python files, or none that could be read.
"""


def carry_out(argv: Sequence[str]) -> int:
    """Check the paths, and fix or show the difference when asked."""
    chosen = _parser().parse_args(argv)
    rules = rules_of(chosen)
    paths = list(map(_path, chosen.paths))
    from tensafe.check import check_paths, python_files
    from tensafe.report.terminal import progress

    inputs = python_files(paths) if chosen.output else ()
    outlet = Outlet(chosen, sys.stdout, rules, inputs=inputs, what="one of the files to check")
    with progress("checking", sys.stderr) as bar:
        record = check_paths(paths, rules, chosen.jobs, bar)
    if chosen.diff or chosen.fix or chosen.unsafe_fixes:
        from tensafe.cli.fixing import Fixing

        fixing = Fixing(record, rules, unsafe=chosen.unsafe_fixes)
        if chosen.diff:
            return fixing.show_difference(outlet.stream)
        if fixing.write():
            record = check_paths(paths, rules, chosen.jobs, None)
        return _tell(record, outlet, fixing.hint())
    return _tell(record, outlet, _fixable(record, chosen))


def _path(word: str) -> Path:
    if not word:
        raise TensafeError("an empty path: give files or folders")
    if word == "-":
        raise TensafeError("cannot check standard input: give files or folders")
    return Path(word)


def _tell(record: Record, outlet: Outlet, hint: str) -> int:
    outlet.tell(record, hint)
    outlet.say_nothing_found(record)
    return 2 if _none_read(record) else int(has_findings(record))


def _none_read(record: Record) -> bool:
    files = record.summary.get("files")
    return not record.findings and isinstance(files, int) and 0 < files <= len(record.not_checked)


def _fixable(record: Record, chosen: Namespace) -> str:
    """`2 fixable with --fix, 1 more with --unsafe-fixes`: what really can be carried out."""
    if chosen.format != "text" or not any(finding.fix for finding in record.findings):
        return ""
    from tensafe.cli.fixing import count_fixable

    safe, unsafe = count_fixable(record)
    words = [f"{safe} fixable with --fix"] if safe else []
    if unsafe:
        words.append(f"{unsafe} {'more ' if safe else 'fixable '}with --unsafe-fixes")
    return ", ".join(words)


def _parser() -> Parser:
    parser = Parser("check", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument(
        "paths", metavar="PATHS", nargs="*", default=["."], help="files and folders (default: .)"
    )
    parser.add_argument("--fix", action="store_true", help="apply the safe fixes, until nothing changes")
    parser.add_argument("--unsafe-fixes", action="store_true", help="apply the unsafe ones too")
    parser.add_argument("--diff", action="store_true", help="show what fixes would change, change nothing")
    add_rules(parser)
    add_output(parser, "standard output")
    parser.add_argument("--jobs", type=_jobs, metavar="N", help="how many processes (default: one a core)")
    return parser


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise TensafeError(f"argument --jobs: {text!r} is not a positive number")
    return int(text)
