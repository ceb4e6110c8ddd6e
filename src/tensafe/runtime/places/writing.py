"""Which name a write goes to: the syntax of the writing line, peeled down to its root."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensafe.runtime.places.frames import Place, _positions
from tensafe.runtime.places.source import expressions_at, syntax_of

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module | ast.ClassDef

NEVER_COPIES = frozenset(
    {
        "detach", "view", "view_as", "T", "mT", "H", "data", "transpose", "permute", "t", "squeeze",
        "unsqueeze", "select", "narrow", "movedim", "diagonal", "unfold", "as_strided", "real", "imag",
        "swapaxes", "unbind", "split", "chunk", "expand", "expand_as", "requires_grad_", "numpy",
        "unflatten",
    }
)  # fmt: skip
MAY_COPY = frozenset(
    {
        "to", "float", "double", "half", "bfloat16", "int", "long", "bool", "type", "type_as", "cpu",
        "cuda", "contiguous", "reshape", "reshape_as", "flatten", "ravel", "as_tensor", "asarray",
        "ascontiguousarray",
    }
)  # fmt: skip
FUNCTIONS = frozenset({"as_tensor", "asarray", "from_numpy", "flatten", "reshape", "ravel", "squeeze"})


def target_at(place: Place) -> ast.expr | None:
    """What the call or statement at a place writes to: `x[0]` in `x[0] += 1`, `x` in `x.add_(1)`."""
    for node in expressions_at(place):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
                return node.func.value
            return node.args[0] if node.args else None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            return node.value
    statement = statement_at(place)
    if isinstance(statement, ast.AugAssign):
        return statement.target
    return None


def call_at(place: Place) -> ast.Call | None:
    """The call that runs at a place."""
    return next((node for node in expressions_at(place) if isinstance(node, ast.Call)), None)


def statement_at(place: Place) -> ast.stmt | None:
    """The statement that runs at a place."""
    syntax = syntax_of(place[0].co_filename)
    if syntax is None:
        return None
    nodes = expressions_at(place)
    if nodes:
        return syntax.statement(nodes[0])
    line, end_line, column, _ = _positions(*place)
    for statement in syntax.statements.get(line or 0, ()):
        if column is None or (statement.col_offset, statement.end_lineno) == (column, end_line):
            return statement
    return None


def scope_of(place: Place, node: ast.AST) -> Scope | None:
    """The function, or the module, around a node."""
    syntax = syntax_of(place[0].co_filename)
    while syntax is not None and node in syntax.parents:
        node = syntax.parents[node]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            return node
    return node if isinstance(node, ast.Module) else None


def class_of(place: Place, node: ast.AST) -> ast.ClassDef | None:
    """The class around a node."""
    syntax = syntax_of(place[0].co_filename)
    while syntax is not None and node in syntax.parents:
        node = syntax.parents[node]
        if isinstance(node, ast.ClassDef):
            return node
    return None


def links(node: ast.expr) -> Iterator[ast.expr]:
    """The chain of an expression from the outside in: `a.b[0].t()` gives itself, `a.b[0]`, `a.b`, `a`."""
    while True:
        yield node
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute):
                return
            node = node.args[0] if node.func.attr in FUNCTIONS and node.args else node.func.value
        elif isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        else:
            return


def root_of(node: ast.expr) -> ast.expr | None:
    """The name, or the attribute of a name, from which the chain starts: `self.x` in `self.x[0].view(-1)`."""
    chain = list(links(node))
    if not isinstance(chain[-1], ast.Name):
        return None
    root: ast.expr = chain[-1]
    for link in reversed(chain[:-1]):
        if not isinstance(link, ast.Attribute) or link.attr in NEVER_COPIES:
            break
        root = link
    return root


def makers(node: ast.expr) -> list[str]:
    """The calls and attributes of a chain by name, from the outside in."""
    names = []
    for link in links(node):
        if isinstance(link, ast.Call) and isinstance(link.func, ast.Attribute):
            names.append(link.func.attr)
        elif isinstance(link, ast.Attribute):
            names.append(link.attr)
    return names


def dotted(node: ast.expr) -> str:
    return ast.unparse(node)


def assignments(scope: ast.AST, name: str) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """The assignments to a name or attribute in a scope, with their values, in the order of the text."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name | ast.Attribute) and dotted(target) == name:
                    yield node, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None and dotted(node.target) == name:
            yield node, node.value


def loop_over(place: Place, node: ast.AST, name: str) -> ast.expr | None:
    """What the `for` around a node iterates over to give this name its values."""
    syntax = syntax_of(place[0].co_filename)
    while syntax is not None and node in syntax.parents:
        node = syntax.parents[node]
        if isinstance(node, ast.For) and any(
            isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.target)
        ):
            return node.iter
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
    return None
