"""One file of source: its text, its tree, and the lines on which something can start to go wrong."""

from __future__ import annotations

import ast
import bisect
import functools
import re
from collections.abc import Iterable, Iterator

from tensafe.facts import Site

# What no finding can do without: a write, a live reference, a cut. `x += 1` counts things nearly always.
# One pattern for each first character, which the `re` module can then search for quickly.
_TRIGGERS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"[-+*/@%&|]=(?!=)(?!\s*1\s*$)(?!\s*['\"f])",
        r"_\((?<=[a-z0-9]_\()",
        r"inplace\s*=\s*True",
        r"out\s*=(?!=)",
        r"\]\s*=(?!=)(?<!['\"]\]=)(?<!['\"]\] =)",
        r"\.data\b",
        r"copyto",
        r"data_ptr",
        r"max_norm",
        r"state_dict\(",
        r"parameters\(\)\s*[)\]}]",
        r"\.tensor\(",
        r"backward\(",
        r"\.numpy\(",
        r"(?:gamma|GAMMA|discount)\s*\*(?!\*)",
        r"checkpoint\(",
        r"create_graph",
        r"\.clone\(",
        r"\.copy\(\)(?<=[\])]\.copy\(\))",
        r"\btorch\.save\(",
        r"pickle\.dumps?\(",
        r"deepcopy\(",
        r"fromkeys\(",
        r"num_workers",
        r"\.submit\(",
        r"Thread\(",
        r"Parameter\([^\n]*expand",
        r"register_buffer\([^\n]*expand",
        r"\)\]\s*\*",
        r"(?:ModuleList|Sequential)\([^\n]*(?:\]\s*\*|\[\w+ for )",
        r"\.append\((?=[^\n]*\[[^\]\n]*(?:-1|:)[^\]\n]*\])",
    )
)
_VIEW = re.compile(r"\.view\(")
_ORDER = re.compile(r"\.(permute|transpose|swapaxes|movedim|expand|t)\(|\.m?T\b|channels_last|batch_first")
_NEAR = 600  # characters in which a view follows the call that changes the order
# Engines that only run models: their layers compute no gradients.
_ENGINES = re.compile(
    r"^\s*(?:from|import) (?:vllm|sglang|lmdeploy|tensorrt_llm|exllamav[23])\b", re.MULTILINE
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
        self.triggers = _lines_of(text, *_TRIGGERS, more=_views_after_an_order(text))
        self._lines: list[str] | None = None
        self._lines_with: dict[str, list[int]] = {}
        self._ascii = text.isascii()

    def has_trigger(self, node: ast.stmt) -> bool:
        """Whether something inside this statement can start a finding."""
        first = bisect.bisect_left(self.triggers, node.lineno)
        return first < len(self.triggers) and self.triggers[first] <= (node.end_lineno or node.lineno)

    def holds(self, node: ast.stmt, word: str) -> bool:
        """Whether a word stands on one of the lines of this statement."""
        lines = self._lines_with.get(word)
        if lines is None:
            lines = self._lines_with[word] = _lines_of(self.text, re.compile(re.escape(word)))
        first = bisect.bisect_left(lines, node.lineno)
        return first < len(lines) and lines[first] <= (node.end_lineno or node.lineno)

    @functools.cached_property
    def only_runs(self) -> bool:
        """Whether the file builds on an engine in which no model is trained."""
        return _ENGINES.search(self.text) is not None

    @functools.cached_property
    def stars(self) -> list[ast.ImportFrom]:
        """The `from x import *` at the top of the file."""
        return [*_stars(self.tree.body)] if "import *" in self.text else []

    @functools.cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return {inner: outer for outer in ast.walk(self.tree) for inner in ast.iter_child_nodes(outer)}

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the inside out."""
        while (outer := self._parents.get(node)) is not None:
            yield outer
            node = outer

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


def _stars(body: list[ast.stmt]) -> Iterator[ast.ImportFrom]:
    for statement in body:
        if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
            yield statement
        elif isinstance(statement, ast.If | ast.Try):
            yield from _stars(statement.body)


def _views_after_an_order(text: str) -> Iterator[int]:
    """Where a `view` follows soon on `permute` and the like, with no copy in between."""
    if not _ORDER.search(text):
        return
    for found in _VIEW.finditer(text):
        before = text[max(found.start() - _NEAR, 0) : found.start()]
        last = max(before.rfind("contiguous"), before.rfind("reshape"), before.rfind("\n    def "), 0)
        if _ORDER.search(before, last):
            yield found.start()


def _lines_of(text: str, *patterns: re.Pattern[str], more: Iterable[int] = ()) -> list[int]:
    """The lines on which one of the patterns begins, and those of `more` places."""
    places = {found.start() for pattern in patterns for found in pattern.finditer(text)}
    places.update(more)
    if not places:
        return []
    ends = [found.start() for found in _NEWLINE.finditer(text)]
    return sorted({bisect.bisect_left(ends, place) + 1 for place in places})


_NEWLINE = re.compile(r"\n")
