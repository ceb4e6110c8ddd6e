"""`x[rows].clone()` to `x[rows]`: a method whose call is not needed."""

from __future__ import annotations

import ast

from tensafe.findings import DropCall
from tensafe.fixes.edits import Edit, Refusal
from tensafe.fixes.locate import node_at
from tensafe.fixes.source import Source, has_comment


def edits(action: DropCall, source: Source) -> list[Edit]:
    """The edits, or `Refusal`."""
    node = node_at(
        source,
        action.site,
        lambda node: isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute),
    )
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Attribute)
    if node.args or node.keywords:
        raise Refusal("only a call without arguments can be dropped")
    dot = source.text.rindex(".", 0, source.span(node.func)[1])
    kept = source.text[:dot].rstrip()
    if kept.endswith("\\"):
        raise Refusal("the line goes on behind a backslash")
    start, end = len(kept), source.span(node)[1]
    if has_comment(source.text[start:end]) or "#" in kept.rpartition("\n")[2]:
        raise Refusal("a comment beside the call would be lost or hide the rest")
    return [Edit(start, end, "")]
