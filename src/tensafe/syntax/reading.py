"""Whether a function reads a name again after a statement, as far as it certainly runs that way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from tensafe.ops import words

_ABOUT_SHAPE = words(
    """
    shape size dim ndim dtype device numel stride layout is_cuda requires_grad requires_grad_ is_contiguous
    nbytes grad_fn is_leaf element_size itemsize is_floating_point new_zeros new_ones new_empty new_full
    new_tensor
    """
)
_RESETS = words("copy_ zero_ fill_ normal_ uniform_")
_LOOKS_ONLY = words(
    """
    zeros_like ones_like empty_like full_like rand_like randn_like len id type isinstance print result_type
    """
)
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module


class Syntax:
    """The nodes of one function, or of the statements of a module, with what is around each."""

    def __init__(self, scope: ast.AST) -> None:
        self.scope = scope
        self.parents: dict[ast.AST, ast.AST] = {}
        stack = [scope]
        while stack:
            node = stack.pop()
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
                stack.append(child)

    @cached_property
    def own(self) -> list[ast.AST]:
        """The nodes of the function without those of the functions inside it, in the order of the text."""
        return _own_nodes(self.scope)

    @cached_property
    def _assigned(self) -> dict[str, list[tuple[ast.stmt, ast.expr]]]:
        found: dict[str, list[tuple[ast.stmt, ast.expr]]] = {}
        for node in self.own:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name | ast.Attribute):
                        found.setdefault(dotted(target), []).append((node, node.value))
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                found.setdefault(dotted(node.target), []).append((node, node.value))
        return found

    def assignments(self, name: str) -> list[tuple[ast.stmt, ast.expr]]:
        """The assignments to a name or attribute, with their values, in the order of the text."""
        return self._assigned.get(name, [])

    @cached_property
    def returned(self) -> list[ast.expr]:
        """The values that the function returns."""
        return [node.value for node in self.own if isinstance(node, ast.Return) and node.value is not None]

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that a node stands in."""
        here: ast.AST | None = node
        while here is not None and not isinstance(here, ast.stmt):
            here = self.parents.get(here)
        return here

    def read_after(self, statement: ast.stmt, name: str) -> ast.expr | None:
        """The first expression that reads this name's values after `statement`, in the same function."""
        for following in self._following(statement, name):
            found = next(self.reads(following, name), None)
            if found is not None:
                return None if _bound_before(following, name, found) else found
            if binds(following, name) or _resets(following, name):
                return None
            if isinstance(following, ast.Return | ast.Raise | ast.Break | ast.Continue):
                return None
        return None

    def reads(self, part: ast.AST, name: str) -> Iterator[ast.expr]:
        """The expressions in a part of the source that read the values of this name."""
        for node in _walk(part):
            if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
                continue
            if not isinstance(node.ctx, ast.Load) or not _may_be(node, name) or dotted(node) != name:
                continue
            if not self._only_looks(node) and not self._is_written(node):
                yield node

    def _following(self, statement: ast.stmt, name: str) -> Iterator[ast.stmt | ast.expr]:
        """What runs after a statement, up to the end of its function; a loop's body once more."""
        node: ast.AST = statement
        while node in self.parents:
            parent = self.parents[node]
            block = _block(parent, node)
            if block is not None:
                yield from block[block.index(node) + 1 :]  # type: ignore[arg-type]
                if _leaves(block[-1]) and not isinstance(block[-1], ast.Continue):
                    return
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

    def _only_looks(self, node: ast.AST) -> bool:
        """Whether an expression asks for the shape, not for the values."""
        parent = self.parents.get(node)
        if isinstance(parent, ast.Attribute) and parent.attr in _ABOUT_SHAPE:
            return True
        if isinstance(parent, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in parent.ops):
            return True
        if isinstance(parent, ast.Call) and node in parent.args:
            return dotted(parent.func).rpartition(".")[2] in _LOOKS_ONLY
        return False

    def _is_written(self, node: ast.AST) -> bool:
        """Whether an expression is but the target of an in-place write."""
        parent = self.parents.get(node)
        if isinstance(parent, ast.keyword):
            return parent.arg == "out"
        while isinstance(parent, ast.Subscript | ast.Attribute) and parent.value is node:
            if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store):
                return True
            if isinstance(parent, ast.Attribute) and parent.attr.endswith("_") and parent.attr[-2:] != "__":
                call = self.parents.get(parent)
                return isinstance(call, ast.Call) and isinstance(self.parents.get(call), ast.Expr)
            node, parent = parent, self.parents.get(parent)
        return False


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return ast.unparse(node)


def binds(statement: ast.AST, name: str) -> bool:
    """Whether a statement gives the name, or what it is an attribute of, another object."""
    root = name.partition(".")[0].partition("[")[0]
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    elif isinstance(statement, ast.AnnAssign | ast.For):
        targets = [statement.target]
    elif isinstance(statement, ast.Delete):
        targets = statement.targets
    elif isinstance(statement, ast.With):
        targets = [item.optional_vars for item in statement.items if item.optional_vars is not None]
    return any(dotted(part) in (name, root) for target in targets for part in flat(target))


def flat(target: ast.expr) -> list[ast.expr]:
    """The single targets of an assignment."""
    if isinstance(target, ast.Tuple | ast.List):
        return [part for element in target.elts for part in flat(element)]
    return [target.value] if isinstance(target, ast.Starred) else [target]


_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _own_nodes(scope: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    stack = [child for child in ast.iter_child_nodes(scope) if not isinstance(child, _INNER)][::-1]
    while stack:
        node = stack.pop()
        found.append(node)
        stack += [child for child in ast.iter_child_nodes(node) if not isinstance(child, _INNER)][::-1]
    return found


def _walk(part: ast.AST) -> Iterator[ast.AST]:
    yield part
    for child in ast.iter_child_nodes(part):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _walk(child)


def _bound_before(part: ast.AST, name: str, read: ast.expr) -> bool:
    """Whether a statement inside a part gives the name another object before it is read there."""
    return any(
        isinstance(node, ast.stmt) and node.lineno < read.lineno and node is not part and binds(node, name)
        for node in _walk(part)
    )


def _may_be(node: ast.expr, name: str) -> bool:
    """Whether an expression can be this name, at a glance."""
    if isinstance(node, ast.Name):
        return node.id == name
    if isinstance(node, ast.Attribute):
        return name.endswith(node.attr)
    return name.endswith("]")


def _block(parent: ast.AST, node: ast.AST) -> list[ast.stmt] | None:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and node in block:
            return block
    return None


def _leaves(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue)


def _resets(statement: ast.AST, name: str) -> bool:
    """Whether a statement gives all of the tensor new values: `x.zero_()`, `x[:] = y`, `f(out=x)`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        keywords = statement.value.keywords
        if any(keyword.arg == "out" and dotted(keyword.value) == name for keyword in keywords):
            return True
        func = statement.value.func
        return isinstance(func, ast.Attribute) and func.attr in _RESETS and dotted(func.value) == name
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        target = statement.targets[0]
        return (
            dotted(target.value) == name
            and isinstance(target.slice, ast.Slice)
            and not (target.slice.lower or target.slice.upper)
        )
    return False
