"""Following a call of the project's own function, with the arguments at hand."""

from __future__ import annotations

import ast

from tensafe.facts import Kind
from tensafe.static.aliasing import refills
from tensafe.static.arguments import Arguments
from tensafe.static.joins import join_all
from tensafe.static.machine import DEEPEST, Machine
from tensafe.static.modes import grad_mode
from tensafe.static.unknowns import unknown
from tensafe.static.values import (
    ARRAY,
    TENSOR,
    Constant,
    Frame,
    Function,
    Mapping,
    Memory,
    Scope,
    Sequence,
    Value,
)

_TENSOR_HINTS = ("Tensor", "torch.Tensor", "th.Tensor")


def invoke(
    m: Machine,
    function: Function,
    positional: list[Value],
    keywords: dict[str, Value],
    node: ast.AST,
    rest: Value | None = None,
) -> Value:
    """Interpret a call of the project's own function with these arguments."""
    body = function.node
    if m.depth >= DEEPEST or m.calling.count(body) > 0:
        return unknown(m, Arguments(positional, keywords), getattr(body, "name", ""))
    label = getattr(body, "name", "<lambda>")
    if function.owner is not None:
        label = f"{function.owner.node.name}.{label}"
    frame = Frame(function.source, {}, function.closure, label)
    frame.node = body
    frame.owner = function.owner
    frame.self_value = function.receiver
    caller = m.frame
    bind_parameters(m, frame, function, positional, keywords, rest)
    m.called_from.append((node, caller))
    since = m.past.order
    try:
        result = _run(m, frame, function, caller)
    finally:
        m.called_from.pop()
    if frame.self_value is not None and m.past.order > since:
        refills.handed_out(m, frame, caller, result, since, node)
    return result


def _run(m: Machine, frame: Frame, function: Function, caller: Frame) -> Value:
    body = function.node
    path, grad_on, statement = m.path, m.grad_on, m.statement
    m.frame = frame
    m.depth += 1
    m.calling.append(body)
    try:
        if isinstance(body, ast.Lambda):
            return m.eval(body.body)
        if "inference" in body.name:
            m.grad_on = False
        for decorator in body.decorator_list:
            switched = grad_mode(m, decorator)
            m.grad_on = m.grad_on if switched is None else switched
        m.block(body.body)
    finally:
        m.calling.pop()
        m.depth -= 1
        m.frame, m.path, m.grad_on, m.statement = caller, path, grad_on, statement
    return result_of(frame)


def result_of(frame: Frame) -> Value:
    """What a finished call gives back."""
    if frame.yields is not None:
        return Sequence(frame.yields[:-1], frame.yields[-1], "generator")
    found = [value for value in frame.returns if not (type(value) is Constant and value.value is None)]
    return join_all(found)


def bind_parameters(
    m: Machine,
    frame: Frame,
    function: Function,
    positional: list[Value],
    keywords: dict[str, Value],
    rest: Value | None,
) -> None:
    """Give every parameter its argument, its default, or something unknown."""
    spec = function.node.args
    names = [*spec.posonlyargs, *spec.args]
    given = list(positional)
    if function.receiver is not None and not _is_static(function.node):
        given.insert(0, function.receiver)
    scope = frame.scope
    for place, parameter in enumerate(names):
        if place < len(given):
            scope[parameter.arg] = given[place]
    _bind_defaults(m, function, names, scope, keywords, rest)
    if spec.vararg:
        scope[spec.vararg.arg] = Sequence(given[len(names) :], rest, "tuple")
    if spec.kwarg:
        taken = {parameter.arg for parameter in (*names, *spec.kwonlyargs)}
        items: dict[object, Value] = {name: value for name, value in keywords.items() if name not in taken}
        scope[spec.kwarg.arg] = Mapping(items, rest)


def _is_static(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in decorators)


def _bind_defaults(
    m: Machine,
    function: Function,
    names: list[ast.arg],
    scope: Scope,
    keywords: dict[str, Value],
    rest: Value | None,
) -> None:
    spec = function.node.args
    defaults: dict[str, ast.expr] = {}
    if spec.defaults:
        last = names[-len(spec.defaults) :]
        defaults = {parameter.arg: default for parameter, default in zip(last, spec.defaults, strict=True)}
    for parameter, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        if default is not None:
            defaults[parameter.arg] = default
    for parameter in (*names, *spec.kwonlyargs):
        name = parameter.arg
        if name in keywords:
            scope[name] = keywords[name]
        elif name not in scope:
            scope[name] = _default(m, parameter, defaults.get(name), rest is None)


def _default(m: Machine, parameter: ast.arg, default: ast.expr | None, usable: bool) -> Value:
    """The default of an argument that is not given; a tensor made by a call there is one for all calls."""
    if default is None or not (usable or isinstance(default, ast.Call)):
        return _argument(m, parameter)
    value = m.eval(default)
    if not isinstance(default, ast.Call) or type(value) is not Memory or value.kind not in (TENSOR, ARRAY):
        return value if usable else _argument(m, parameter)
    m.books.defaults[value.storages[0]] = m.moment(Kind.MADE, "", default)
    return value


def _argument(m: Machine, parameter: ast.arg) -> Value:
    thing = m.thing(parameter.arg)
    if parameter.annotation is not None:
        annotated = ast.unparse(parameter.annotation).strip("'")
        if annotated.endswith("Module"):
            m.past.modules.update(thing.storages)
        elif annotated in _TENSOR_HINTS:
            thing.kind = TENSOR
    return thing
