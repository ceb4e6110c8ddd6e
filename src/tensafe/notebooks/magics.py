r"""Lines that only IPython understands, found where a statement begins and never inside one or a string."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensafe.findings.source import split_lines

# Cell magics whose cell is Python of the same namespace; any other makes it something else.
_PYTHON = frozenset(
    ["time", "timeit", "capture", "prun", "memit", "mprun", "scalene", "matplotlib", "tensafe"]
)
_CELL_MAGIC = re.compile(r"%%(\w+)")
_LINE_MAGIC = re.compile(r"\s*([%!?]|(?P<kept>[\w.,\s*\[\]'\"]+=\s*)[%!](?!=))|[^#'\"(]*[\w\])]\?{1,2}\s*$")
_TOKEN = re.compile(
    r"""(?P<triple>\"{3}|'{3})|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*|(?P<open>[(\[{])|(?P<close>[)\]}])"""
)


def foreign(cell: str) -> bool:
    """Whether a cell is another language: `%%bash`, `%%html`, `%%writefile`."""
    magic = _CELL_MAGIC.match(cell.lstrip())
    return magic is not None and magic[1] not in _PYTHON


def magic_lines(cell: str) -> Iterator[tuple[int, str]]:
    """The numbers of the lines, from 1, that are no Python, and how far their statement is indented."""
    continued = False
    depth, quote, indent = 0, "", ""
    for number, line in enumerate(split_lines(cell), 1):
        if continued or (not depth and not quote and _LINE_MAGIC.match(line)):
            indent = indent if continued else line[: len(line) - len(line.lstrip())]
            yield number, indent
            continued = line.rstrip("\r\n").endswith("\\")
        else:
            depth, quote = _after(line, depth, quote)


def _after(line: str, depth: int, quote: str) -> tuple[int, str]:
    """How many brackets are open after a line, and in which triple quote it ends."""
    at = 0
    while True:
        if quote:
            end = line.find(quote, at)
            if end < 0:
                return depth, quote
            at, quote = end + 3, ""
        token = _TOKEN.search(line, at)
        if token is None:
            return depth, ""
        at = token.end()
        quote = token["triple"] or ""
        depth += 1 if token["open"] else -1 if token["close"] and depth else 0
