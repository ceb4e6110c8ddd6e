"""The syntax at a place: which expression runs there, and the statement around it."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache

from tensafe.facts import Site
from tensafe.runtime.places.frames import Place, _characters, _line, _positions

Span = tuple[int, int, int, int]  # line, column, end line, end column, as `ast` counts them


class Syntax:
    """One file's syntax tree, with every expression by its span and every node's parent."""

    def __init__(self, text: str) -> None:
        self.parents: dict[ast.AST, ast.AST] = {}
        self.by_span: dict[Span, list[ast.expr]] = {}
        self.statements: dict[int, list[ast.stmt]] = {}
        for node in ast.walk(ast.parse(text)):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
            if isinstance(node, ast.expr):
                self.by_span.setdefault(_span(node), []).append(node)
            elif isinstance(node, ast.stmt):
                self.statements.setdefault(node.lineno, []).append(node)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement around a node."""
        while not isinstance(node, ast.stmt):
            if node not in self.parents:
                return None
            node = self.parents[node]
        return node


@lru_cache(maxsize=256)
def syntax_of(filename: str) -> Syntax | None:
    """The syntax of a file; None when there is no source or it does not parse."""
    lines = linecache.getlines(filename)
    try:
        return Syntax("".join(lines)) if lines else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def expressions_at(place: Place) -> list[ast.expr]:
    """The expressions that an instruction computes, outermost first; on Python 3.10 all of the line's."""
    syntax = syntax_of(place[0].co_filename)
    if syntax is None:
        return []
    line, end_line, column, end_column = _positions(*place)
    if line is None:
        return []
    if column is None or end_line is None or end_column is None:
        found = (node for statement in syntax.statements.get(line, ()) for node in ast.walk(statement))
        return [node for node in found if isinstance(node, ast.expr) and node.lineno == line]
    return syntax.by_span.get((line, column, end_line, end_column), [])


def site_of_node(place: Place, node: ast.expr | ast.stmt) -> Site:
    """The site of a node in the file of a place."""
    path = place[0].co_filename
    end_line = node.end_lineno or node.lineno
    first = _characters(_line(path, node.lineno), node.col_offset) + 1
    last = _characters(_line(path, end_line), node.end_col_offset or 0) + 1
    name = getattr(place[0], "co_qualname", place[0].co_name).replace(".<locals>", "")
    return Site(path, node.lineno, first, end_line, last, "" if name == "<module>" else name)


def _span(node: ast.expr) -> Span:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0
