"""A parsed source text in which nodes are spans of characters."""

from __future__ import annotations

import ast
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
        self._parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

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
