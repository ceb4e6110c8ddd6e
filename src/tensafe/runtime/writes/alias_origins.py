"""How a name came to be another name's memory, read from the source of the function that writes it."""

from __future__ import annotations

import ast
from typing import NamedTuple

from tensafe.runtime.places.frames import Place
from tensafe.runtime.places.writing import (
    MAY_COPY,
    NEVER_COPIES,
    Scope,
    assignments,
    dotted,
    loop_over,
    makers,
    root_of,
)

CONVERTS = MAY_COPY - {"reshape", "reshape_as", "flatten", "ravel"}


class Origin(NamedTuple):
    """The expression whose memory a name shares, the calls in between, and the statement that made it."""

    root: ast.expr
    makers: tuple[str, ...]
    statement: ast.stmt | None

    @property
    def may_copy(self) -> bool:
        return any(maker in MAY_COPY for maker in self.makers)

    @property
    def converts(self) -> bool:
        return any(maker in CONVERTS for maker in self.makers)

    @property
    def detaches(self) -> bool:
        return "detach" in self.makers


def alias_of(value: ast.expr) -> tuple[ast.expr, tuple[str, ...]] | None:
    """The root of an expression that gives the root's own memory, or may give it."""
    root = root_of(value)
    if root is None:
        return None
    inner = set(makers(root))
    made = tuple(name for name in makers(value) if name not in inner or name in NEVER_COPIES | MAY_COPY)
    if any(name not in NEVER_COPIES and name not in MAY_COPY for name in made) or _indexes_with_tensor(value):
        return None
    return root, made


def _indexes_with_tensor(value: ast.expr) -> bool:
    """Whether an index in the expression may be a mask or a list, which copies."""
    for node in ast.walk(value):
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if any(isinstance(part, ast.List | ast.Compare) for part in parts):
                return True
    return False


def made_from(place: Place, scope: Scope, name: str, before: int) -> Origin | None:
    """What the last assignment to a name before a line gave it, if that was an alias."""
    found: Origin | None = None
    for statement, value in assignments(scope, name):
        if statement.lineno <= before:
            alias = alias_of(value)
            found = Origin(alias[0], alias[1], statement) if alias is not None else None
    return found


def parameter_of(place: Place, scope: Scope, root: ast.expr, line: int) -> tuple[str, Origin] | None:
    """The argument of the function whose memory a name shares, with the calls in between."""
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    arguments = {
        argument.arg for argument in [*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs]
    }
    made: tuple[str, ...] = ()
    first: ast.stmt | None = None
    name = dotted(root)
    for _ in range(5):
        over = loop_over(place, root, name)
        if over is not None:
            alias = alias_of(over)
            if alias is None:
                return None
            root, name, made = alias[0], dotted(alias[0]), made + alias[1]
            continue
        origin = made_from(place, scope, name, line)
        if origin is None:
            bound = any(statement.lineno <= line for statement, _ in assignments(scope, name))
            known = name in arguments and not bound
            return (name, Origin(root, made, first)) if known else None
        made, first = made + origin.makers, origin.statement
        if dotted(origin.root) == name:
            return (name, Origin(root, made, first)) if name in arguments else None
        root, name, line = origin.root, dotted(origin.root), (first.lineno - 1 if first is not None else line)
    return None


def argument_for(scope: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call, name: str) -> ast.expr | None:
    """The expression that a call gives for an argument of the function."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [argument.arg for argument in [*scope.args.posonlyargs, *scope.args.args]]
    if names and names[0] in ("self", "cls"):
        names = names[1:]
    if name not in names or any(isinstance(item, ast.Starred) for item in call.args):
        return None
    position = names.index(name)
    return call.args[position] if position < len(call.args) else None


def default_of(scope: Scope, name: str) -> ast.expr | None:
    """The default value of an argument, when it is made by a call."""
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    positional = [*scope.args.posonlyargs, *scope.args.args]
    pairs = list(zip(reversed(positional), reversed(scope.args.defaults), strict=False))
    pairs += [
        (argument, default)
        for argument, default in zip(scope.args.kwonlyargs, scope.args.kw_defaults, strict=True)
        if default is not None
    ]
    return next(
        (value for argument, value in pairs if argument.arg == name and isinstance(value, ast.Call)), None
    )
