"""Whether the source reads a name again after a statement, as far as it certainly runs that way."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensafe.runtime.places.frames import Place
from tensafe.runtime.places.source import syntax_of
from tensafe.runtime.places.writing import dotted

ABOUT_SHAPE = frozenset(
    {
        "shape", "size", "dim", "ndim", "dtype", "device", "numel", "stride", "layout", "is_cuda",
        "requires_grad", "requires_grad_", "is_contiguous", "nbytes", "grad_fn", "is_leaf", "element_size",
        "itemsize", "is_floating_point", "new_zeros", "new_ones", "new_empty", "new_full", "new_tensor",
    }
)  # fmt: skip
RESETS = frozenset({"copy_", "zero_", "fill_", "normal_", "uniform_"})
LOOKS_ONLY = frozenset(
    {
        "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "len", "id",
        "type", "isinstance", "print",
    }
)  # fmt: skip


def read_after(place: Place, statement: ast.stmt, name: str) -> ast.expr | None:
    """The first expression that reads this name's values after `statement`, in the function around it."""
    syntax = syntax_of(place[0].co_filename)
    if syntax is None:
        return None
    for following in _following(syntax.parents, statement, name):
        found = next(reads(following, name, syntax.parents), None)
        if found is not None:
            return found
        if binds(following, name) or _resets(following, name):
            return None
        if isinstance(following, ast.Return | ast.Raise | ast.Break | ast.Continue):
            return None
    return None


def reads(part: ast.AST, name: str, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.expr]:
    """The expressions in a part of the source that read the values of this name."""
    for node in _walk(part):
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript) or not isinstance(
            node.ctx, ast.Load
        ):
            continue
        if dotted(node) == name and not _only_looks(node, parents) and not _is_written(node, parents):
            yield node


def binds(statement: ast.AST, name: str) -> bool:
    """Whether a statement gives the name, or what it is an attribute of, another object."""
    roots = {name, re.split(r"[.\[]", name)[0]}
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    elif isinstance(statement, ast.AnnAssign | ast.For):
        targets = [statement.target]
    elif isinstance(statement, ast.Delete):
        targets = statement.targets
    elif isinstance(statement, ast.With):
        targets = [item.optional_vars for item in statement.items if item.optional_vars is not None]
    return any(dotted(part) in roots for target in targets for part in _flat(target))


def _flat(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        return [part for element in target.elts for part in _flat(element)]
    return [target.value] if isinstance(target, ast.Starred) else [target]


def _following(
    parents: dict[ast.AST, ast.AST], statement: ast.stmt, name: str
) -> Iterator[ast.stmt | ast.expr]:
    """What runs after a statement, up to the end of its function; a loop's body once more."""
    node: ast.AST = statement
    while node in parents:
        parent = parents[node]
        block = _block(parent, node)
        if block is not None:
            yield from block[block.index(node) + 1 :]  # type: ignore[arg-type]
        if isinstance(parent, ast.For | ast.While) and block is parent.body:
            if isinstance(parent, ast.While):
                yield parent.test
            elif binds(parent, name):
                node = parent
                continue
            yield from parent.body[: parent.body.index(node) + 1]  # type: ignore[arg-type]
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return
        node = parent


def _block(parent: ast.AST, node: ast.AST) -> list[ast.stmt] | None:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and node in block:
            return block
    return None


def _walk(part: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a part in the order of the text, without the bodies of functions defined there."""
    yield part
    for child in ast.iter_child_nodes(part):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _walk(child)


def _only_looks(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether an expression asks for the shape, not for the values."""
    parent = parents.get(node)
    if isinstance(parent, ast.Attribute) and parent.attr in ABOUT_SHAPE:
        return True
    if isinstance(parent, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in parent.ops):
        return True
    if isinstance(parent, ast.Call) and node in parent.args:
        called = dotted(parent.func).rpartition(".")[2]
        return called in LOOKS_ONLY
    return False


def _is_written(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether an expression is but the target of an in-place write."""
    parent = parents.get(node)
    while isinstance(parent, ast.Subscript | ast.Attribute) and parent.value is node:
        if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store):
            return True
        if isinstance(parent, ast.Attribute) and parent.attr.endswith("_") and not parent.attr.endswith("__"):
            call = parents.get(parent)
            return isinstance(call, ast.Call) and isinstance(parents.get(call), ast.Expr)
        node, parent = parent, parents.get(parent)
    return False


def _resets(statement: ast.AST, name: str) -> bool:
    """Whether a statement gives all of the tensor new values: `x.zero_()`, `x[:] = y`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        return isinstance(func, ast.Attribute) and func.attr in RESETS and dotted(func.value) == name
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        target = statement.targets[0]
        return (
            dotted(target.value) == name
            and isinstance(target.slice, ast.Slice)
            and not (target.slice.lower or target.slice.upper)
        )
    return False
