"""How a name came to be another name's memory, read from the source of the function around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensafe.ops import words
from tensafe.syntax.reading import Syntax, dotted

NEVER_COPIES = words(
    """
    detach view view_as T mT H data transpose permute t squeeze unsqueeze select narrow movedim diagonal
    unfold as_strided real imag swapaxes unbind split chunk expand expand_as requires_grad_ numpy unflatten
    from_numpy
    """
)
MAY_COPY = words(
    """
    to float double half bfloat16 int long bool type type_as cpu cuda contiguous reshape reshape_as flatten
    ravel as_tensor asarray ascontiguousarray
    """
)
CONVERTS = MAY_COPY - {"reshape", "reshape_as", "flatten", "ravel"}
_FUNCTIONS = words("as_tensor asarray from_numpy flatten reshape ravel squeeze")
Function = ast.FunctionDef | ast.AsyncFunctionDef


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


def links(node: ast.expr) -> Iterator[ast.expr]:
    """The chain of an expression from the outside in: `a.b[0].t()` gives itself, `a.b[0]`, `a.b`, `a`."""
    while True:
        yield node
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute):
                return
            node = node.args[0] if node.func.attr in _FUNCTIONS and node.args else node.func.value
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


def alias_of(value: ast.expr) -> tuple[ast.expr, tuple[str, ...]] | None:
    """The root of an expression that gives the root's own memory, or may give it."""
    root = root_of(value)
    if root is None:
        return None
    inner = set(makers(root))
    made = tuple(name for name in makers(value) if name not in inner or name in NEVER_COPIES | MAY_COPY)
    if any(name not in NEVER_COPIES and name not in MAY_COPY for name in made):
        return None
    if _indexes_with_tensor(value) or _asks_for_copy(value):
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


def _asks_for_copy(value: ast.expr) -> bool:
    """`x.to(dtype, copy=True)`."""
    return any(
        isinstance(node, ast.Call) and any(keyword.arg == "copy" for keyword in node.keywords)
        for node in ast.walk(value)
    )


def made_from(syntax: Syntax, name: str, before: int) -> Origin | None:
    """What the last assignment to a name before a line gave it, if that was an alias."""
    found: Origin | None = None
    for statement, value in syntax.assignments(name):
        if statement.lineno <= before:
            alias = alias_of(value)
            found = Origin(alias[0], alias[1], statement) if alias is not None else None
    return found


def loop_over(syntax: Syntax, node: ast.AST, name: str) -> ast.expr | None:
    """What the `for` around a node iterates over to give this name its values."""
    here: ast.AST | None = syntax.parents.get(node)
    while here is not None and not isinstance(here, ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(here, ast.For) and any(
            isinstance(part, ast.Name) and part.id == name for part in ast.walk(here.target)
        ):
            return here.iter
        here = syntax.parents.get(here)
    return None


def parameter_of(syntax: Syntax, root: ast.expr, line: int) -> tuple[str, Origin] | None:
    """The argument of the function whose memory a name shares, with the calls in between."""
    scope = syntax.scope
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    names = arguments_of(scope)
    made: tuple[str, ...] = ()
    first: ast.stmt | None = None
    name = dotted(root)
    for _ in range(5):
        over = loop_over(syntax, root, name)
        if over is not None:
            alias = alias_of(over)
            if alias is None:
                return None
            root, name, made = alias[0], dotted(alias[0]), made + alias[1]
            continue
        origin = made_from(syntax, name, line)
        if origin is None:
            bound = any(statement.lineno <= line for statement, _ in syntax.assignments(name))
            return (name, Origin(root, made, first)) if name in names and not bound else None
        made, first = made + origin.makers, origin.statement
        if dotted(origin.root) == name:
            return (name, Origin(root, made, first)) if name in names else None
        root, name, line = origin.root, dotted(origin.root), (first.lineno - 1 if first is not None else line)
    return None


def arguments_of(scope: Function) -> set[str]:
    spec = scope.args
    return {argument.arg for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}


def argument_for(scope: Function, call: ast.Call, name: str) -> ast.expr | None:
    """The expression that a call gives for an argument of the function."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [argument.arg for argument in (*scope.args.posonlyargs, *scope.args.args)]
    if names and names[0] in ("self", "cls"):
        names = names[1:]
    if name not in names or any(isinstance(item, ast.Starred) for item in call.args):
        return None
    position = names.index(name)
    return call.args[position] if position < len(call.args) else None


def default_of(scope: ast.AST, name: str) -> ast.expr | None:
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
