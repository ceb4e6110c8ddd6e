"""`state` to `copy.deepcopy(state)`, with the import that it needs."""

from __future__ import annotations

import ast

from tensafe.findings import Wrap
from tensafe.fixes.edits import Edit, Refusal
from tensafe.fixes.imports import ensure
from tensafe.fixes.locate import node_at
from tensafe.fixes.source import Source

ATOMS = (
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.DictComp,
)


def edits(action: Wrap, source: Source) -> list[Edit]:
    """The edits, or `Refusal`."""
    node = _expression(action, source)
    if isinstance(node, (ast.GeneratorExp, ast.Starred, ast.Slice)) or isinstance(
        getattr(node, "ctx", None), ast.Store
    ):
        raise Refusal("the place is not a plain value")
    before, _, after = action.template.partition("{}")
    if not before.endswith("(") and not isinstance(node, ATOMS):
        before, after = before + "(", ")" + after
    start, end = source.span(node)
    found = [Edit(start, start, before), Edit(end, end, after)]
    for module in action.imports:
        found += ensure(module, node, source)
    return found


def _expression(action: Wrap, source: Source) -> ast.expr:
    site = action.site
    if not site.end_column:
        return _sole_call(action, source)
    node = node_at(
        source, site, lambda node: isinstance(node, (ast.expr, ast.Assign, ast.AnnAssign, ast.Return))
    )
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return)):
        if node.value is None:
            raise Refusal("the place is not a plain value")
        return node.value
    assert isinstance(node, ast.expr)
    return node


def _sole_call(action: Wrap, source: Source) -> ast.expr:
    """Python 3.10 tells a line only: the place is clear when there is one call on it."""
    node = node_at(source, action.site, lambda node: isinstance(node, ast.Call))
    assert isinstance(node, ast.expr)
    return node
