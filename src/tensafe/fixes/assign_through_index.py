"""`x[mask].fill_(v)` to `x[mask] = v`, `x[mask].zero_()` to `x[mask] = 0`.

`x[index].add_(y)` is refused: where an index repeats, neither `x[index] += y` nor any other short form is
sure to be what was meant. So is `x[a][b] = v`: what it meant depends on shapes that the source does not show.
"""

from __future__ import annotations

import ast

from tensafe.findings import AssignThroughIndex
from tensafe.fixes.edits import Edit, Refusal
from tensafe.fixes.locate import node_at
from tensafe.fixes.source import Source, has_comment
from tensafe.fixes.twins import ALWAYS_VIEWS

ONLY = "only `x[index].fill_(v)` and `x[index].zero_()` can be rewritten without knowing shapes"


def edits(action: AssignThroughIndex, source: Source) -> list[Edit]:
    """The edits, or `Refusal`."""
    node = node_at(source, action.site, lambda node: isinstance(node, (ast.Call, ast.Assign, ast.AugAssign)))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        raise Refusal(ONLY)
    target = node.func.value
    if node.func.attr not in ("fill_", "zero_") or not isinstance(target, ast.Subscript):
        raise Refusal(ONLY)
    statement = source.statement(node)
    if not isinstance(statement, ast.Expr) or statement.value is not node:
        raise Refusal("the result of the call is used")
    if not keeps_memory(target.value):
        raise Refusal("what is indexed may itself be a copy")
    start, end = source.span(target)
    if source.span(statement)[0] != start:
        raise Refusal("the statement begins with a parenthesis")
    return _assignment(node, end, source.span(statement)[1], source)


def _assignment(node: ast.Call, after: int, end: int, source: Source) -> list[Edit]:
    assert isinstance(node.func, ast.Attribute)
    if node.func.attr == "zero_" and not node.args and not node.keywords:
        return _without_comments([Edit(after, end, " = 0")], source)
    values = [*node.args, *(word.value for word in node.keywords if word.arg == "value")]
    if len(values) != 1 or len(node.args) + len(node.keywords) != 1:
        raise Refusal(ONLY)
    if isinstance(values[0], (ast.Starred, ast.GeneratorExp, ast.NamedExpr)):
        raise Refusal("the argument is not a plain value")
    start, stop = source.span(values[0])
    bare = isinstance(
        values[0], (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Attribute, ast.Call)
    )
    opening, closing = ("(", ")") if bare and "\n" in source.text[start:stop] else ("", "")
    return _without_comments([Edit(after, start, f" = {opening}"), Edit(stop, end, closing)], source)


def _without_comments(found: list[Edit], source: Source) -> list[Edit]:
    if any(has_comment(source.text[edit.start : edit.end]) for edit in found):
        raise Refusal("a comment inside the call would be lost")
    return found


def keeps_memory(value: ast.expr) -> bool:
    """Whether the expression surely is a named tensor or a view of one, so that a write to it lands there."""
    if isinstance(value, ast.Name):
        return True
    if isinstance(value, ast.Attribute):
        return keeps_memory(value.value)
    if isinstance(value, ast.Subscript):
        return _is_basic(value.slice) and keeps_memory(value.value)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr in ALWAYS_VIEWS and keeps_memory(value.func.value)
    return False


def _is_basic(index: ast.expr) -> bool:
    """Integers, slices, None and `...` view a tensor; a string looks up a dict."""
    if isinstance(index, ast.Tuple):
        return all(map(_is_basic, index.elts))
    if isinstance(index, ast.UnaryOp):
        return isinstance(index.op, ast.USub) and _is_basic(index.operand)
    if isinstance(index, ast.Constant):
        return not isinstance(index.value, bool)
    return isinstance(index, ast.Slice)
