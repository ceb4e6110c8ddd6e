"""Where a value goes inside its own function, read from the syntax by names alone."""

from __future__ import annotations

import ast

from tensafe.runtime.places.frames import Place
from tensafe.runtime.places.source import expressions_at, syntax_of


def may_reach_backward(place: Place) -> bool:
    """Whether the value made at a place can get out of sight or into a backward.

    False only when its statement binds a local name that is used for nothing but calls whose result is
    dropped, or kept under names of the same fate: a log.
    """
    statement, function = _around(place)
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign) or function is None:
        return not isinstance(statement, ast.Expr) or _calls_backward(statement)
    names = _bound(statement)
    if not names:
        return True
    for _ in range(8):
        before = len(names)
        for part in ast.walk(function):
            if part is not statement and _mentions(part, names):
                if isinstance(part, ast.Return | ast.Yield) or _calls_backward(part):
                    return True
                if isinstance(part, ast.Assign | ast.AnnAssign | ast.AugAssign):
                    bound = _bound(part)
                    if not bound:
                        return True
                    names |= bound
        if len(names) == before:
            return False
    return True


def feeds(cut: Place, backward: Place) -> bool:
    """Whether the value made at `cut` has a hand in what `backward` starts from, within one function."""
    made, function = _around(cut)
    root, _ = _around(backward)
    if made is None or root is None or function is None or cut[0] is not backward[0]:
        return False
    if made is root:
        return True
    wanted = {part.id for part in ast.walk(root) if isinstance(part, ast.Name)}
    for _ in range(8):
        before = len(wanted)
        for part in ast.walk(function):
            if isinstance(part, ast.Assign | ast.AnnAssign | ast.AugAssign) and _bound(part) & wanted:
                if part is made:
                    return True
                wanted |= {name.id for name in ast.walk(part) if isinstance(name, ast.Name)}
        if len(wanted) == before:
            return False
    return False


def _around(place: Place) -> tuple[ast.stmt | None, ast.AST | None]:
    """The statement at a place and the function or module around it."""
    syntax = syntax_of(place[0].co_filename)
    nodes = expressions_at(place)
    if syntax is None or not nodes:
        return None, None
    statement = syntax.statement(nodes[0])
    scope: ast.AST | None = statement
    while scope is not None and not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
        scope = syntax.parents.get(scope)
    return statement, scope


def _bound(statement: ast.Assign | ast.AnnAssign | ast.AugAssign) -> set[str]:
    """The local names that a statement binds; empty when it binds anything else, too."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    parts = [item for target in targets for item in _flat(target)]
    if not all(isinstance(part, ast.Name) for part in parts):
        return set()
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _flat(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        return [item for element in target.elts for item in _flat(element)]
    return [target.value] if isinstance(target, ast.Starred) else [target]


def _mentions(part: ast.AST, names: set[str]) -> bool:
    if not isinstance(part, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Yield | ast.Call):
        return False
    return any(isinstance(name, ast.Name) and name.id in names for name in ast.walk(part))


def _calls_backward(part: ast.AST) -> bool:
    ends = ("backward", "grad")
    return any(
        isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ends
        for call in ([part] if isinstance(part, ast.Call) else ast.walk(part))
    )
