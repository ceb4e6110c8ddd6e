"""`tensafe explain`: the page of one rule."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tensafe.cli.options import Parser


def carry_out(argv: Sequence[str]) -> int:
    """Print the page of the rule of this name or code."""
    parser = Parser("explain", description="What a rule reports, why, what to write instead, and examples.")
    parser.add_argument("name", metavar="NAME", help="a rule's name or code, as `tensafe rules` lists them")
    chosen = parser.parse_args(argv)
    from tensafe.checking import comments
    from tensafe.report.terminal import write_page
    from tensafe.rules._loader import by_name
    from tensafe.rules._pages import markdown

    is_comment = chosen.name.lower() in (comments.NAME, comments.CODE.lower())
    write_page(comments.PAGE if is_comment else markdown(by_name(chosen.name)), sys.stdout)
    return 0
