"""Statements: assignments, branches, loops, contexts, definitions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tensafe.ops import Dtype
from tensafe.static import assignment, definitions
from tensafe.static.conditions import key_of, truth
from tensafe.static.iteration import rounds
from tensafe.static.joins import join
from tensafe.static.machine import STATEMENTS, Journal, Machine
from tensafe.static.values import NOTHING_KNOWN, Library, Memory, Method, Opaque, Path, Value

NO_GRAD = frozenset({"no_grad", "inference_mode", "_no_grad"})


def expression(m: Machine, node: ast.Expr) -> None:
    from tensafe.static.discards import dropped

    value = node.value
    if isinstance(value, ast.Constant):
        return
    dropped(m, value, m.eval(value))


def assign(m: Machine, node: ast.Assign) -> None:
    value = m.eval(node.value)
    for target in node.targets:
        assignment.store(m, target, value, node)


def annotated(m: Machine, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assignment.store(m, node.target, m.eval(node.value), node)


def delete(m: Machine, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name) and target.id in m.frame.scope:
            m.bind(m.frame.scope, target.id, NOTHING_KNOWN)


def returns(m: Machine, node: ast.Return) -> bool:
    if node.value is not None:
        value = m.eval(node.value)
        m.frame.returns.append(value)
        if m.frame.trusted:
            m.hazards.used(value, node, backward=False)
    return True


def leaves(m: Machine, node: ast.stmt) -> bool:
    return True


def raises(m: Machine, node: ast.Raise) -> bool:
    return True


def asserts(m: Machine, node: ast.Assert) -> None:
    m.eval(node.test)


def branch(m: Machine, node: ast.If) -> bool:
    known = truth(m, node.test, m.eval(node.test))
    if known is not None:
        return m.block(node.body if known else node.orelse)
    key, taken = key_of(m, node.test)
    for held, arm in m.path:
        if held == key and isinstance(key, str):
            return m.block(node.body if arm == taken else node.orelse)
    return two_arms(m, key, taken, lambda: m.block(node.body), lambda: m.block(node.orelse))


def two_arms(
    m: Machine, key: object, taken: bool, one: Callable[[], Any], other: Callable[[], Any]
) -> bool:
    """Interpret both arms from the same state and join what they leave."""
    with m.arm(key, taken) as first:
        left_first = bool(one())
    after_first = _take_back(first)
    with m.arm(key, not taken) as second:
        left_second = bool(other())
    if left_first and left_second:
        return True
    if left_first:
        m.path = (*m.path, (key, not taken))
    elif left_second:
        _take_back(second)
        _bind_all(m, after_first)
        m.path = (*m.path, (key, taken))
    else:
        _merge(m, after_first)
    return False


Changes = dict[tuple[int, str], tuple[dict[str, Value], Value]]


def _take_back(journal: Journal) -> Changes:
    """Undo the bindings of an arm; what they were stays in the answer."""
    changes: Changes = {}
    for scope, name, _ in journal:
        if name in scope:
            changes[id(scope), name] = (scope, scope[name])
    for scope, name, old in reversed(journal):
        if old is None:
            scope.pop(name, None)
        else:
            scope[name] = old
    return changes


def _bind_all(m: Machine, changes: Changes) -> None:
    for (_, name), (scope, value) in changes.items():
        m.bind(scope, name, value)


def _merge(m: Machine, after_first: Changes) -> None:
    for (_, name), (scope, value) in after_first.items():
        now = scope.get(name)
        m.bind(scope, name, value if now is None else join(value, now))


def loop(m: Machine, node: ast.For | ast.AsyncFor) -> bool:
    values = rounds(m, m.eval(node.iter))
    path = m.path
    for value in values:
        assignment.store(m, node.target, value, node)
        m.block(node.body)
        m.path = path
    m.block(node.orelse)
    m.path = path
    return False


def while_loop(m: Machine, node: ast.While) -> bool:
    path = m.path
    for _ in range(2):
        known = truth(m, node.test, m.eval(node.test))
        if known is False:
            break
        m.block(node.body)
        m.path = path
    m.block(node.orelse)
    m.path = path
    return False


def context(m: Machine, node: ast.With | ast.AsyncWith) -> bool:
    grad_on = m.grad_on
    for item in node.items:
        switched = grad_mode(m, item.context_expr)
        if switched is not None:
            m.grad_on = switched
            continue
        value = m.eval(item.context_expr)
        if item.optional_vars is not None:
            assignment.store(m, item.optional_vars, value, node)
    try:
        return m.block(node.body)
    finally:
        m.grad_on = grad_on


def grad_mode(m: Machine, node: ast.expr) -> bool | None:
    """Whether a context or decorator switches recording on or off, None when it does neither."""
    call = node if isinstance(node, ast.Call) else None
    value = m.eval(call.func if call else node)
    path = value.path if type(value) is Library else ""
    name = path.rpartition(".")[2]
    if not path.startswith("torch"):
        return None
    if name in NO_GRAD:
        off = not (call and call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is False)
        return not off and m.grad_on
    if name == "enable_grad":
        return True
    if name == "set_grad_enabled":
        argument = call.args[0] if call and call.args else None
        if isinstance(argument, ast.Constant):
            return bool(argument.value)
        return m.grad_on
    return None


def attempt(m: Machine, node: ast.Try) -> bool:
    path = m.path
    left = m.block(node.body)
    for handler in node.handlers:
        if handler.name:
            m.bind(m.frame.scope, handler.name, NOTHING_KNOWN)
        two_arms(m, ("except", id(handler)), True, _body(m, handler.body), _no_body)
    m.path = path if not left else m.path
    if not left:
        left = m.block(node.orelse)
    return m.block(node.finalbody) or (left and not node.handlers)


def _body(m: Machine, body: list[ast.stmt]) -> Callable[[], bool]:
    return lambda: m.block(body)


def _no_body() -> bool:
    return False


def match(m: Machine, node: ast.Match) -> bool:
    m.eval(node.subject)
    path: Path = m.path
    for case in node.cases:
        for name in ast.walk(case.pattern):
            if isinstance(name, ast.MatchAs | ast.MatchStar) and name.name:
                m.bind(m.frame.scope, name.name, m.thing())
        two_arms(m, ("case", id(case)), True, _body(m, case.body), _no_body)
    m.path = path
    return False


def augmented(m: Machine, node: ast.AugAssign) -> None:
    assignment.augment(m, node)


def is_number(value: Value) -> bool:
    """Whether a value certainly shares no memory."""
    return type(value) is Opaque or (type(value) is Memory and value.dtype is Dtype.INTEGER and not value.exact)


def is_method(value: Value) -> bool:
    return type(value) is Method


STATEMENTS.update(
    {
        ast.Expr: expression,
        ast.Assign: assign,
        ast.AnnAssign: annotated,
        ast.AugAssign: augmented,
        ast.Delete: delete,
        ast.Return: returns,
        ast.Raise: raises,
        ast.Assert: asserts,
        ast.Break: leaves,
        ast.Continue: leaves,
        ast.If: branch,
        ast.For: loop,
        ast.AsyncFor: loop,
        ast.While: while_loop,
        ast.With: context,
        ast.AsyncWith: context,
        ast.Try: attempt,
        ast.Match: match,
        ast.FunctionDef: definitions.function,
        ast.AsyncFunctionDef: definitions.function,
        ast.ClassDef: definitions.class_,
        ast.Import: definitions.imports,
        ast.ImportFrom: definitions.imports_from,
    }  # type: ignore[dict-item]
)
if hasattr(ast, "TryStar"):
    STATEMENTS[ast.TryStar] = attempt  # type: ignore[assignment]
