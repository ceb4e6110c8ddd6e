"""`torch.tensor(losses, requires_grad=True)` to `torch.stack(losses)`."""

from __future__ import annotations

import ast

from tensafe.findings import CallInstead
from tensafe.fixes.edits import Edit, Refusal
from tensafe.fixes.imports import ensure
from tensafe.fixes.locate import node_at
from tensafe.fixes.source import Source, has_comment, path_of

NUMBERS = frozenset(["float", "int", "bool", "len", "round"])
LEAVES_TORCH = frozenset(["item", "tolist", "numpy"])
LISTS = (ast.List, ast.ListComp, ast.Tuple)
FILLS = (".append", ".extend", ".insert")


def edits(action: CallInstead, source: Source) -> list[Edit]:
    """The edits, or `Refusal`."""
    node = node_at(
        source, action.site, lambda node: isinstance(node, ast.Call) and path_of(node.func) is not None
    )
    assert isinstance(node, ast.Call)
    if len(node.args) != 1 or isinstance(node.args[0], ast.Starred):
        raise Refusal("only a call with one positional argument can be rewritten")
    _refuse_no_tensors(node, source)
    return [*_function(node, action.function, source), *_keywords(node, action, source)]


def _function(node: ast.Call, function: str, source: Source) -> list[Edit]:
    """The new function under the name that its module has in this file (`import torch as th`)."""
    module, _, name = function.rpartition(".")
    start, end = source.span(node.func)
    if isinstance(node.func, ast.Attribute) and path_of(node.func.value) in source.module_names.get(
        module, ()
    ):
        return [Edit(end - len(node.func.attr), end, name)]
    return [Edit(start, end, function), *ensure(module.partition(".")[0], node, source)]


def _keywords(node: ast.Call, action: CallInstead, source: Source) -> list[Edit]:
    if not action.drop_keywords or not node.keywords:
        return []
    kept = [word.arg or "**" for word in node.keywords if word.arg != "requires_grad"]
    if kept:
        raise Refusal(f"`{kept[0]}` would be dropped")
    end = source.span(node)[1] - 1
    after = _past_parentheses(source, source.span(node.args[0])[1], source.span(node.keywords[0].value)[0])
    if has_comment(source.text[after:end]):
        raise Refusal("a comment inside the call would be lost")
    return [Edit(after, end, "")]


def _past_parentheses(source: Source, start: int, limit: int) -> int:
    """The end of an argument, closing parentheses of its own included."""
    comma = source.text.index(",", start, limit)
    return start + len(source.text[start:comma].rstrip())


def _refuse_no_tensors(node: ast.Call, source: Source) -> None:
    """Only a list can be stacked, and only one of tensors."""
    value = node.args[0]
    path = path_of(value)
    elements = _put_into(path, source, source.statement(node)) if path else _elements(value)
    if not elements:
        raise Refusal("the argument is not seen to be a list of tensors")
    if any(map(_is_no_tensor, elements)):
        raise Refusal("the list holds numbers, not tensors: keep the tensors when the list is filled")


def _elements(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.ListComp):
        return [value.elt]
    return value.elts if isinstance(value, (ast.List, ast.Tuple)) else []


def _put_into(path: str, source: Source, use: ast.stmt) -> list[ast.expr]:
    """What this file puts into the list of that name; nothing when the name is ever bound otherwise."""
    found: list[ast.expr] = []
    for node in (node for name in ("", *FILLS) for node in source.fills.get(f"{path}{name}", [])):
        if isinstance(node, ast.Call):
            found += node.args[-1:] if path_of(node.func) != path else []
        elif node is not use:
            if not isinstance(node.value, LISTS):
                return []
            found += _elements(node.value)
    return found


def _is_no_tensor(value: ast.expr) -> bool:
    if isinstance(value, (ast.Constant, ast.JoinedStr, *LISTS)):
        return True
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute):
            return value.func.attr in LEAVES_TORCH
        return isinstance(value.func, ast.Name) and value.func.id in NUMBERS
    if isinstance(value, ast.BinOp):
        return _is_no_tensor(value.left) and _is_no_tensor(value.right)
    return False
