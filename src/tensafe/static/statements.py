"""Statements: assignments, branches, loops, contexts, definitions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tensafe.static import assignment, containers
from tensafe.static.conditions import implied, key_of, tensor_asked_for, truth
from tensafe.static.discards import dropped
from tensafe.static.graphs import finished, keeping, refusals
from tensafe.static.iteration import rounds
from tensafe.static.joins import join, join_all, options_of
from tensafe.static.machine import Journal, Machine
from tensafe.static.modes import grad_mode
from tensafe.static.values import NOTHING_KNOWN, Choice, Memory, Path, Sequence, State, Value


def expression(m: Machine, node: ast.Expr) -> None:
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
        elif isinstance(target, ast.Subscript):
            owner = m.eval(target.value)
            if type(owner) is State:
                owner.trail = ()
            elif type(owner) is Sequence:
                containers.emptied(owner)


def returns(m: Machine, node: ast.Return) -> bool:
    if node.value is not None:
        value = m.eval(node.value)
        if type(value) is Sequence:
            keeping.returned(m, value, node)
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
    known_then, known_else = implied(m, node, True), implied(m, node, False)
    arms = _body(m, node.body), _body(m, node.orelse, tensor_asked_for(node.test))
    return two_arms(m, key, taken, *arms, known_then, known_else)


def two_arms(
    m: Machine,
    key: object,
    taken: bool,
    one: Callable[[], Any],
    other: Callable[[], Any],
    known_then: Path = (),
    known_else: Path = (),
) -> bool:
    """Interpret both arms from the same state and join what they leave."""
    began = m.past.order
    with m.arm(key, taken) as first:
        m.path = (*m.path, *known_then)
        left_first = bool(one())
    after_first, middle = _take_back(first), m.past.order
    with m.arm(key, not taken) as second:
        m.path = (*m.path, *known_else)
        left_second = bool(other())
    if m.finished.ended and (left_first or left_second):
        finished.left(m, began if left_first else middle, m.past.order if left_second else middle)
    if left_first and left_second:
        return True
    if left_first != left_second:
        m.finished.guards.add((key, not taken if left_first else taken))
    if left_first:
        m.path = (*m.path, (key, not taken), *known_else)
    elif left_second:
        _take_back(second)
        _bind_all(m, after_first)
        m.path = (*m.path, (key, taken), *known_then)
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
    path, began = m.path, m.round_began
    with finished.rounds_of(m) as this:
        for value in values:
            m.round_began = m.past.newest
            finished.next_round(m, this)
            assignment.store(m, node.target, value, node)
            left = m.block(node.body)
            m.path = path
            if left and isinstance(node.body[-1], ast.Return | ast.Raise | ast.Break):
                break
    m.round_began = began
    m.block(node.orelse)
    m.path = path
    return False


def while_loop(m: Machine, node: ast.While) -> bool:
    path = m.path
    with finished.rounds_of(m) as this:
        for _ in range(2):
            finished.next_round(m, this)
            known = truth(m, node.test, m.eval(node.test))
            if known is False:
                break
            m.block(node.body)
            m.path = path
    m.block(node.orelse)
    m.path = path
    return False


def context(m: Machine, node: ast.With | ast.AsyncWith) -> bool:
    grad_on, newest = m.grad_on, m.past.newest
    for item in node.items:
        switched = grad_mode(m, item.context_expr)
        if switched is not None:
            m.grad_on = switched
            continue
        value = m.eval(item.context_expr)
        if item.optional_vars is not None:
            assignment.store(m, item.optional_vars, value, node)
    try:
        with refusals.around(m, node, newest):
            return m.block(node.body)
    finally:
        m.grad_on = grad_on


def attempt(m: Machine, node: ast.Try) -> bool:
    path = m.path
    with refusals.expected(m, node):
        left = m.block(node.body)
    for handler in node.handlers:
        if handler.name:
            m.bind(m.frame.scope, handler.name, NOTHING_KNOWN)
        two_arms(m, ("except", id(handler)), True, _body(m, handler.body), _no_body)
    m.path = path if not left else m.path
    if not left:
        left = m.block(node.orelse)
    return m.block(node.finalbody) or (left and not node.handlers)


def _body(m: Machine, body: list[ast.stmt], no_tensor: str = "") -> Callable[[], bool]:
    """A suite to interpret; `no_tensor` is a name that is no tensor in it."""
    if not body or not isinstance(m.frame.scope.get(no_tensor), Memory | Choice):
        return lambda: m.block(body)
    return lambda: _without_tensor(m, body, no_tensor)


def _without_tensor(m: Machine, body: list[ast.stmt], name: str) -> bool:
    scope, before = m.frame.scope, m.frame.scope[name]
    others = [one for one in options_of(before) if type(one) is not Memory]
    other = join_all(others) if others else m.thing(name)
    m.bind(scope, name, other)
    left = m.block(body)
    if scope.get(name) is other:
        m.bind(scope, name, before)
    return left


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
