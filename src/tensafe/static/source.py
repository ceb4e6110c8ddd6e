"""One file of source: its text, its tree, and the lines on which something can start to go wrong."""

from __future__ import annotations

import ast
import bisect
import re
from itertools import accumulate

from tensafe.facts import Site

# What no finding can do without: a write, a live reference, a cut. `x += 1` counts things nearly always.
_TRIGGER = re.compile(
    r"""
    [-+*/@%&|]=(?!=)(?!\s*1\s*$)(?!\s*['"f])
    | \.\w*[a-z0-9]_\(
    | inplace\s*=\s*True
    | \bout\s*=
    | (?<!['"])\]\s*=(?!=)
    | \.data\b | copyto | data_ptr | max_norm
    | state_dict\(\) | parameters\(\)\) | parameters\(\)\s*[\]}]
    | \.tensor\( | backward\( | checkpoint\( | create_graph | load_state_dict
    """,
    re.VERBOSE | re.MULTILINE,
)
_RELEVANT = re.compile(r"\b(torch|numpy|state_dict)\b")


def is_relevant(text: str) -> bool:
    """Whether a text can hold anything for the rules at all."""
    return _RELEVANT.search(text) is not None


class Source:
    """A parsed file."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text, filename=path)
        self.triggers = _trigger_lines(text)
        self._lines: list[str] | None = None
        self._ascii = text.isascii()

    def has_trigger(self, node: ast.stmt) -> bool:
        """Whether something inside this statement can start a finding."""
        first = bisect.bisect_left(self.triggers, node.lineno)
        return first < len(self.triggers) and self.triggers[first] <= (node.end_lineno or node.lineno)

    def site(self, node: ast.AST, function: str = "") -> Site:
        """The span of a node; columns count characters from 1."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end_line = getattr(node, "end_lineno", None) or line
        end_column = getattr(node, "end_col_offset", None) or column
        if not self._ascii:
            column, end_column = self._characters(line, column), self._characters(end_line, end_column)
        return Site(self.path, line, column + 1, end_line, end_column + 1, function)

    def _characters(self, line: int, offset: int) -> int:
        if self._lines is None:
            self._lines = self.text.splitlines()
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return len(text.encode()[:offset].decode(errors="ignore"))


def _trigger_lines(text: str) -> list[int]:
    starts = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]
    return sorted({bisect.bisect_right(starts, found.start()) for found in _TRIGGER.finditer(text)})
