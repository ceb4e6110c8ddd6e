"""A parsed source text in which nodes are spans of characters."""

from __future__ import annotations

import ast
import bisect
import functools
import io
import tokenize
from collections.abc import Iterator

from tensafe.findings import Site
from tensafe.findings.source import split_lines

Node = ast.stmt | ast.expr
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)


class Source:
    """The text, its tree, and the way from one to the other; raises SyntaxError when it does not parse."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._lines = split_lines(text)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._all = list(ast.walk(self.tree))
        self._parents = {child: node for node in self._all for child in ast.iter_child_nodes(node)}
        self.bindings: dict[ast.AST, dict[str, list[tuple[int, ast.stmt, str, frozenset[str]]]]] = {}
        self.imported: dict[tuple[ast.AST, str], list[ast.Import]] = {}
        self.taken: dict[tuple[ast.AST, str], bool] = {}

    def span(self, node: Node) -> tuple[int, int]:
        """The characters of a node, without parentheses around it."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def segment(self, node: Node) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def site_span(self, site: Site) -> tuple[int, int] | None:
        """The characters of a site; a whole line when it has no columns, None when there is no such place."""
        last = max(site.line, site.end_line)
        if not 1 <= site.line <= last <= len(self._lines):
            return None
        if not site.end_column:
            return self._starts[site.line - 1], self._starts[last]
        start = self._starts[site.line - 1] + site.column - 1
        end = self._starts[last - 1] + site.end_column - 1
        return (start, end) if start < end <= self._starts[last] else None

    def parents(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the inside out."""
        while node in self._parents:
            node = self._parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds the node."""
        found = (
            node
            if isinstance(node, ast.stmt)
            else next(p for p in self.parents(node) if isinstance(p, ast.stmt))
        )
        assert isinstance(found, ast.stmt)
        return found

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, class or module whose names the node uses."""
        return next(parent for parent in self.parents(node) if isinstance(parent, SCOPES))

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements in whose row this one stands."""
        for _, value in ast.iter_fields(self._parents[statement]):
            if isinstance(value, list) and statement in value:
                return value
        return [statement]

    @functools.cached_property
    def index(self) -> Index:
        """All nodes with a span, by their places."""
        return Index({node: self.span(node) for node in self._all if isinstance(node, Node)})

    @functools.cached_property
    def loads(self) -> dict[str, list[tuple[int, ast.Name]]]:
        """Where each name is read, in the order of the text."""
        found: dict[str, list[tuple[int, ast.Name]]] = {}
        for node in self._all:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append((self.index.spans[node][0], node))
        for places in found.values():
            places.sort(key=lambda place: place[0])
        return found

    @functools.cached_property
    def shared(self) -> set[tuple[ast.AST, str]]:
        """Scopes and the names that they declare `global` or `nonlocal`."""
        return {
            (self.scope(node), name)
            for node in self._all
            if isinstance(node, (ast.Global, ast.Nonlocal))
            for name in node.names
        }

    @functools.cached_property
    def fills(self) -> dict[str, list[ast.Assign | ast.Call]]:
        """The assignments to each path, and the calls of each path (`losses`, `losses.append`)."""
        found: dict[str, list[ast.Assign | ast.Call]] = {}
        for node in self._all:
            if isinstance(node, ast.Assign):
                for path in {path_of(target) for target in node.targets} - {None}:
                    found.setdefault(path or "", []).append(node)
            elif isinstance(node, ast.Call) and (path := path_of(node.func)):
                found.setdefault(path, []).append(node)
        return found

    @functools.cached_property
    def module_names(self) -> dict[str, set[str]]:
        """Under which names the file has each module that it imports."""
        found: dict[str, set[str]] = {}
        for node in self._all:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found.setdefault(alias.name, set()).add(alias.asname or alias.name)
        return found

    def line_start(self, node: Node) -> int:
        """Where the first line of a statement begins, its decorators included."""
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(item.lineno for item in decorators)])
        return self._starts[first - 1]

    def line_end(self, node: Node) -> int:
        """Where the line after a statement begins."""
        assert node.end_lineno is not None
        return self._starts[node.end_lineno]

    @property
    def newline(self) -> str:
        """The line end of the first line."""
        first = self._lines[0] if self._lines else "\n"
        return first[len(first.rstrip("\r\n")) :] or "\n"

    def _offset(self, line: int, column: int) -> int:
        """`column` counts UTF-8 bytes, as `ast` does."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        if not text.isascii():
            column = len(text.encode()[:column].decode())
        return self._starts[line - 1] + column


class Index:
    """Nodes by their spans, so that many sites are found without a walk for each."""

    def __init__(self, spans: dict[Node, tuple[int, int]]) -> None:
        self.spans = spans
        self._ordered = sorted(spans, key=lambda node: (spans[node][0], -spans[node][1]))
        self._starts = [spans[node][0] for node in self._ordered]
        self._ending: dict[int, list[Node]] = {}
        for node in self._ordered:
            self._ending.setdefault(spans[node][1], []).append(node)

    def ending_at(self, end: int) -> list[Node]:
        return self._ending.get(end, [])

    def inside(self, start: int, end: int) -> list[Node]:
        """The nodes that begin at `start` or later and end at `end` or before."""
        first, last = bisect.bisect_left(self._starts, start), bisect.bisect_right(self._starts, end)
        return [node for node in self._ordered[first:last] if self.spans[node][1] <= end]

    def last_before(self, start: int) -> Node | None:
        """The innermost of the nodes that begin last, at `start` or before."""
        number = bisect.bisect_right(self._starts, start)
        return self._ordered[number - 1] if number else None


def tokens_of(expression: str) -> list[tuple[tokenize.TokenInfo, int, int]]:
    """The tokens of an expression in brackets, each with start and end offset; no comments, no line ends."""
    lines = split_lines(expression)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    skipped = (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.ENDMARKER,
        tokenize.INDENT,
        tokenize.DEDENT,
    )
    return [
        (token, starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1])
        for token in tokenize.generate_tokens(io.StringIO(expression, newline="").readline)
        if token.type not in skipped
    ]


def has_comment(text: str) -> bool:
    """Whether a stretch of source holds a comment; in doubt, yes."""
    return "#" in text


def path_of(node: ast.AST) -> str | None:
    """`a.b.c` for names and attributes of names, None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = path_of(node.value)
        return owner and f"{owner}.{node.attr}"
    return None
