"""`tensafe check -`: what an editor sends, under the name of the file that it will be."""

from __future__ import annotations

import contextlib
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from tensafe import __version__
from tensafe.checking.documents import Document
from tensafe.cli.baselines import known_to
from tensafe.cli.check import INPUT, fixable_words, tell
from tensafe.cli.fixing import Fixing
from tensafe.cli.outlet import Outlet
from tensafe.cli.projects import Project, all_rules, projects
from tensafe.errors import TensafeError
from tensafe.findings import Finding, Record
from tensafe.report.sources import Sources


def carry_out(chosen: Namespace) -> int:
    """Check the text; with --fix the fixed text goes to standard output, and the findings beside it."""
    if chosen.write_baseline:
        raise TensafeError("--write-baseline needs files: give their paths")
    data = _read()
    name = os.path.abspath(chosen.stdin_filename) if chosen.stdin_filename else "-"
    some = projects([Path(chosen.stdin_filename or ".")], chosen)
    known = known_to(chosen, some)
    fixes = chosen.fix or chosen.unsafe_fixes
    stream = sys.stderr if fixes and not chosen.diff else sys.stdout
    inputs = [Path(chosen.stdin_filename)] if chosen.stdin_filename else []
    outlet = Outlet(chosen, stream, all_rules(some), inputs=inputs, what=INPUT)

    def look(data: bytes) -> tuple[Record, list[str]]:
        record = _checked(data, name, some[0], chosen)
        return known.leave_out(record, _given(name, data, outlet), Path(name))

    record, hints = look(data)
    if not fixes and not chosen.diff:
        return tell(record, outlet, [fixable_words(record, chosen, _opener(name, data)), *hints], chosen)

    def look_again(text: str, path: str) -> Sequence[Finding]:
        return known.new_in(some[0].look(text, path), text, path)

    fixing = Fixing(record, look_again, unsafe=chosen.unsafe_fixes, open_=_opener(name, data))
    if chosen.diff:
        return fixing.show_difference(outlet.stream)
    fixed = fixing.contents()
    if fixed is not None:
        record, hints = look(fixed)
    _print(data if fixed is None else fixed)
    return tell(record, outlet, [fixing.hint(), *hints], chosen)


def _read() -> bytes:
    if sys.stdin is None:  # it was closed before we began
        raise TensafeError("cannot read standard input: it is closed")
    try:
        return sys.stdin.buffer.read()
    except (AttributeError, OSError, ValueError) as error:
        raise TensafeError(f"cannot read standard input: {error}") from None


def _checked(data: bytes, name: str, project: Project, chosen: Namespace) -> Record:
    from tensafe.check import Asked, check_given

    if chosen.force_exclude and project.settings.excludes(name):
        return Record("check", summary={"files": 0}, tool_version=__version__)
    unused = chosen.unused_allows or project.settings.unused_allows
    return check_given(data, name, project.rules, Asked(project.settings, unused_allows=unused))


def _opener(name: str, data: bytes) -> Callable[[str], Document | None]:
    """Opens what was sent, and no other file: a fix belongs to this text alone."""
    return lambda path: Document(path, data) if path == name else None


def _given(name: str, data: bytes, outlet: Outlet) -> Sources:
    """The sources of the outlet, with what was sent in the place of the file."""
    outlet.forget_sources()
    with contextlib.suppress(ValueError):
        outlet.sources.give(name, data)
    return outlet.sources


def _print(data: bytes) -> None:
    from tensafe.report.terminal import writing_to

    with writing_to(sys.stdout):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
