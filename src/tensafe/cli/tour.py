"""`tensafe tour`: every technique of the guides, run live."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tensafe.cli.options import Parser, refuse_terminal
from tensafe.errors import TensafeError

if TYPE_CHECKING:
    from tensafe.report.style import Line
    from tensafe.tour.stop import Stop
    from tensafe.tour.walking import Taken

DESCRIPTION = """\
Run the techniques of the guides on views, copies, in-place operations and detach, here and now: the code,
what the guides say, what happens to memory and graph, and what tensafe makes of it.
"""
EPILOG = """\
Exit status: 0, or 1 when something in this environment differs from what the tour expects.
"""
LANGUAGES = ("en", "ko")


def carry_out(argv: Sequence[str]) -> int:
    """Run the stops that were asked for, and show them."""
    chosen = _parser().parse_args(argv)
    from tensafe.tour.languages import in_language

    stops = in_language(_stops(chosen.only), chosen.lang)
    output = Path(chosen.output).absolute() if chosen.output else None
    if chosen.html and not chosen.list:
        refuse_terminal(chosen.output, sys.stdout)
    if output:
        from tensafe.report import write

        write.refuse_unwritable(output)
    if chosen.list:
        from tensafe.report import tour_text

        _write_lines(list(tour_text.listing(stops)), output)
        return 0
    for package in ("torch", "numpy"):
        if find_spec(package) is None:
            raise TensafeError(f"the tour runs {package}, which is not installed here: pip install {package}")
    taken = _take(stops)
    _tell(taken, chosen, output)
    return int(not all(one.holds for one in taken))


def _parser() -> Parser:
    parser = Parser("tour", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--list", action="store_true", help="list the stops, run nothing")
    parser.add_argument(
        "--only", metavar="NAME", action="append", default=[], help="this stop, or several by commas"
    )
    parser.add_argument("--html", action="store_true", help="as one page that works offline")
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="English or Korean (default: en)")
    parser.add_argument("--output", metavar="FILE", help="write it to FILE instead of standard output")
    return parser


def _stops(wanted: Sequence[str]) -> tuple[Stop, ...]:
    from tensafe.tour import STOPS

    names = [name.strip() for one in wanted for name in one.split(",") if name.strip()]
    known = {stop.name: stop for stop in STOPS}
    for name in names:
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "`tensafe tour --list` lists them"
            raise TensafeError(f"the tour has no stop {name!r}: {hint}")
    return tuple(known[name] for name in dict.fromkeys(names)) if names else STOPS


def _take(stops: Sequence[Stop]) -> list[Taken]:
    from tensafe.report.terminal import progress
    from tensafe.tour.walking import take

    taken = []
    with progress("touring", sys.stderr) as tell:
        for stop in stops:
            taken.append(take(stop))
            if tell is not None:
                tell(len(taken), len(stops))
    return taken


def _tell(taken: Sequence[Taken], chosen: Namespace, output: Path | None) -> None:
    from tensafe.report import terminal, tour_text, write
    from tensafe.report.bar import blocks_for
    from tensafe.tour.languages import WORDS

    words = WORDS[chosen.lang]
    if chosen.html:
        from tensafe.report.html.tour_page import tour_page

        page = tour_page(taken, words, chosen.lang)
        if output is None:
            terminal.write_text(page, sys.stdout)
        else:
            write.write_whole(output, page.encode())
        return
    blocks = blocks_for("utf-8" if output else getattr(sys.stdout, "encoding", None))
    numbered = [(one, f"{number}/{len(taken)}") for number, one in enumerate(taken, 1)]
    _write_lines(
        [line for one, number in numbered for line in tour_text.render(one, number, words, blocks)], output
    )


def _write_lines(lines: Sequence[Line], output: Path | None) -> None:
    from tensafe.report import style, terminal, write

    if output is None:
        terminal.write_lines(lines, sys.stdout)
    else:
        write.write_whole(output, style.plain(lines).encode())
