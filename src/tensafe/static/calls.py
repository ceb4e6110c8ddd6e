"""Calls: who is called, with what, and how far a call of the project's own is followed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from tensafe.static import attributes, definitions
from tensafe.static.aliasing import queues, savers
from tensafe.static.arguments import Arguments
from tensafe.static.graphs import leaks
from tensafe.static.invocation import invoke
from tensafe.static.iteration import items_of, rounds
from tensafe.static.joins import join_all
from tensafe.static.machine import Machine
from tensafe.static.unknowns import unknown
from tensafe.static.values import (
    LIKELY,
    NONE,
    NOTHING_KNOWN,
    Choice,
    Class,
    Function,
    Instance,
    Layer,
    Library,
    Mapping,
    Memory,
    Method,
    Sequence,
    Value,
)

Called = Callable[[Machine, Any, Arguments, ast.Call], Value]
Named = Callable[[Machine, Any, str, Arguments, ast.Call], Value]
# What a function is handed to compute with, and to train where it calls backward.
_NETWORK = re.compile(
    r"(^|[._])(model|net|network|policy|actor|critic|generator|discriminator|encoder|decoder)$|_net$"
)
_LOSS = re.compile(r"loss|criteri|mse|l1|kl|dist|entropy|metric|log")
CALLED: dict[type, Called] = {}  # by the type of what is called
METHODS: dict[type, Named] = {}  # by the type of the receiver of a built-in method


def call(m: Machine, node: ast.Call) -> Value:
    func = node.func
    if isinstance(func, ast.Attribute):
        if _is_super(func.value):
            return _super_call(m, func.attr, arguments(m, node), node)
        receiver = m.eval(func.value)
        given = arguments(m, node)
        if type(receiver) is not Memory and type(receiver) is not Library:
            _mark_scored(node, given)
        return call_method(m, receiver, func.attr, given, node)
    callee = m.eval(func)
    given = arguments(m, node)
    if isinstance(callee, Instance | Layer | Function):
        _mark_scored(node, given)
    return dispatch(m, callee, given, node)


def _mark_scored(node: ast.Call, given: Arguments) -> None:
    """A network that is handed `x.detach()` as it stands."""
    for argument, value in zip(node.args, given.positional, strict=False):
        if not isinstance(argument, ast.Call) or type(value) is not Memory or not value.cuts:
            continue
        if isinstance(argument.func, ast.Attribute) and argument.func.attr == "detach":
            value.cuts[0].scored = not _LOSS.search(ast.unparse(node.func).lower())


def arguments(m: Machine, node: ast.Call) -> Arguments:
    given = Arguments([])
    for one in node.args:
        if isinstance(one, ast.Starred):
            value = m.eval(one.value)
            items = items_of(m, value)
            if items is not None:
                given.positional += items
            else:
                given.rest = _any_of(m, value)
        else:
            given.positional.append(m.eval(one))
    for keyword in node.keywords:
        value = m.eval(keyword.value)
        if keyword.arg is not None:
            given.keywords[keyword.arg] = value
        elif type(value) is Mapping:
            given.keywords.update({str(key): item for key, item in value.items.items()})
            given.rest = value.rest
        else:
            given.rest = m.thing()
    return given


def _any_of(m: Machine, value: Value) -> Value:
    """What stands for each item of something whose length is not known."""
    if type(value) is Sequence and type(value.rest) is Choice:
        return value.rest
    return rounds(m, value)[0]


def call_method(m: Machine, receiver: Value, name: str, given: Arguments, node: ast.Call) -> Value:
    """`receiver.name(...)`."""
    if name in savers.METHODS:
        savers.method(m, receiver, name, given, node)
    elif name in ("put", "put_nowait", "send") and given.positional and isinstance(node.func, ast.Attribute):
        queues.sent(m, node.func.value, given.positional[0], node)
    elif name == "share_memory_" and type(receiver) is Memory:
        queues.shared(m, receiver, node)
    if type(receiver) is Memory:
        return METHODS[Memory](m, receiver, name, given, node)
    if name == "from_address" and given.positional:
        return given.positional[0]
    if type(receiver) is Choice:
        return _each(m, receiver, lambda option: call_method(m, option, name, given, node))
    callee = attributes.read(m, receiver, name, node)
    return dispatch(m, callee, given, node, receiver, name)


def dispatch(
    m: Machine, callee: Value, given: Arguments, node: ast.Call, receiver: Value = NONE, name: str = ""
) -> Value:
    """Call whatever `callee` is."""
    called = CALLED.get(type(callee))
    if called is not None:
        return called(m, callee, given, node)
    result = unknown(m, given, name, receiver)
    if type(callee) is Memory and m.grad_on and _NETWORK.search(ast.unparse(node.func).lower()):
        result.grad = LIKELY
        result.parents = (*result.parents, callee)
        leaks.network(m, result, node)
    return result


def call_choice(m: Machine, choice: Choice, given: Arguments, node: ast.Call) -> Value:
    """Call each of the options."""
    return _each(m, choice, lambda option: dispatch(m, option, given, node))


def call_function(m: Machine, function: Function, given: Arguments, node: ast.Call) -> Value:
    """Call a function of the project."""
    result = invoke(m, function, given.positional, given.keywords, node, given.rest)
    return leaks.called(m, result, "", node)


def call_builtin(m: Machine, method: Method, given: Arguments, node: ast.Call) -> Value:
    """Call a method of a container, a module, an optimizer or a class."""
    named = METHODS.get(type(method.receiver))
    if named is not None:
        return named(m, method.receiver, method.name, given, node)
    return unknown(m, given, method.name, method.receiver)


def _each(m: Machine, choice: Choice, act: object) -> Value:
    results = []
    assert callable(act)
    for number, option in enumerate(choice.options):
        with m.arm(id(choice), number):
            results.append(act(option))
    return join_all(results)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _super_call(m: Machine, name: str, given: Arguments, node: ast.Call) -> Value:
    owner, this = m.frame.owner, m.frame.self_value
    if owner is None or this is None:
        return unknown(m, given)
    for base in owner.bases:
        found = definitions.find_method(base, name) if type(base) is Class else None
        if found:
            function = Function(found[1], found[0].source, (found[0].scope,), this, found[0])
            return invoke(m, function, given.positional, given.keywords, node, given.rest)
    if type(this) is Instance and name != "__init__":
        return METHODS[Instance](m, this, name, given, node)
    return NOTHING_KNOWN
