"""`checkpoint(f, x)` to `checkpoint(f, x, use_reentrant=False)`."""

from __future__ import annotations

import ast

from tensafe.findings import SetKeyword
from tensafe.fixes.edits import Edit, Refusal
from tensafe.fixes.locate import node_at
from tensafe.fixes.source import Source, tokens_of


def edits(action: SetKeyword, source: Source) -> list[Edit]:
    """The edits, or `Refusal`."""
    node = node_at(source, action.site, lambda node: isinstance(node, ast.Call))
    assert isinstance(node, ast.Call)
    for word in node.keywords:
        if word.arg is None:
            raise Refusal(f"`**` may already hold `{action.keyword}`")
        if word.arg == action.keyword:
            start, end = source.span(word.value)
            return [Edit(start, end, action.value)]
    return [_insertion(node, f"{action.keyword}={action.value}", source)]


def _insertion(node: ast.Call, word: str, source: Source) -> Edit:
    start, end = source.span(node)
    tokens = tokens_of(source.text[start:end])
    last, _, past = tokens[-2]  # the last is the closing parenthesis
    at = start + past
    if last.string == "," and not _is_opening(tokens[-3][0].string):
        line = _own_line(source.text[at : end - 1], start + tokens[-3][1], source)
        return Edit(at, at, f"{line or ' '}{word}{',' if line else ''}")
    return Edit(
        at, at, word if _is_opening(last.string) and not (node.args or node.keywords) else f", {word}"
    )


def _is_opening(token: str) -> bool:
    return token == "("


def _own_line(after: str, last_argument: int, source: Source) -> str:
    """The line end and indentation of the arguments, when each has a line of its own."""
    if "\n" not in after or "#" in after:
        return ""
    line_start = source.text.rindex("\n", 0, last_argument) + 1
    line = source.text[line_start:last_argument]
    return source.newline + line[: len(line) - len(line.lstrip())]
