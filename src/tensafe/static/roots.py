"""Where interpretation starts: the file's own statements, then every function that can hold a fault."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensafe.static import cuts, definitions, kept_attributes, modules
from tensafe.static.aliasing import savers
from tensafe.static.arguments import Arguments
from tensafe.static.costs import repeated_copies
from tensafe.static.graphs import finished, leaks, never_reached
from tensafe.static.hazards import memories
from tensafe.static.invocation import bind_parameters
from tensafe.static.machine import Machine, OutOfBudget
from tensafe.static.modes import grad_mode
from tensafe.static.values import (
    LIKELY,
    UNKNOWN,
    Class,
    Frame,
    Function,
    Instance,
    Memory,
    Value,
)

BUDGET_OF_MODULE = 20_000
BUDGET_OF_FUNCTION = 4_000
# What a module returns goes into the loss; so does what a loss function returns.
_TRUSTED = re.compile(r"^_?forward(_|$)|_forward$|^(training|shared)_step$|^__call__$|loss|^forward")
_UNTRUSTED = re.compile(r"inference|generat|predict|eval|sample|test")
_UNTRUSTED_CLASS = re.compile(r"predictor|postprocess|inference|evaluator|metric")
_SAYS = ("only for inference", "for inference only", "inference only")  # in a comment, or in the docstring
_DATA = re.compile(
    r"mask|ids?$|idx|ind(ex|ices)|label|target|len|size|shape|num|pos|box|coord|step|time|dim|scale|eps|mode|flag|"
    r"image|img|config|cfg|name|kwargs|args|device|dtype|meta|batch|cache|state|weight|gt|anchor|"
    r"^(y|t|n|k|i|j|mask|mode|reduction|alpha|gamma|beta|self|ctx)$"
)


def run(m: Machine) -> None:
    """Interpret a file from all its roots."""
    scope: dict[str, Value] = {}
    m.frame = Frame(m.source, scope, (), "")
    definitions.declare(m, m.source.tree.body)
    m.graphs.begin(from_top=True, first_storage=0)
    _attempt(m, BUDGET_OF_MODULE, lambda: m.block(m.source.tree.body))
    m.graphs.begin(from_top=False, first_storage=0)
    for function, cls in functions(m, m.source.tree.body, scope):
        if m.source.has_trigger(function) or (cls is not None and _may_write(m, function, cls)):
            _attempt(m, BUDGET_OF_FUNCTION, _start(m, function, cls, scope))


def functions(
    m: Machine, body: list[ast.stmt], scope: dict[str, Value]
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, Class | None]]:
    """The functions and methods at the top of a file."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement, None
        elif isinstance(statement, ast.ClassDef):
            cls = scope.get(statement.name)
            if isinstance(cls, Class) and m.source.has_trigger(statement):
                _attempt(m, BUDGET_OF_FUNCTION, lambda cls=cls: kept_attributes.look(m, cls))
                for method in cls.methods.values():
                    yield method, cls
        elif isinstance(statement, ast.If | ast.Try):
            yield from functions(m, statement.body, scope)


def _may_write(m: Machine, function: ast.FunctionDef | ast.AsyncFunctionDef, cls: Class) -> bool:
    """Whether a forward may call another method, or a layer made in-place, that writes."""
    return function.name == "forward" and cls.kind == "module" and m.source.has_trigger(cls.node)


def _attempt(m: Machine, budget: int, act: object) -> None:
    m.budget = budget
    m.path, m.grad_on, m.journal, m.depth = (), True, None, 0
    m.started = m.past.tick()
    m.calling.clear()
    m.called_from.clear()
    m.hazards.pending.clear()
    m.past.saves.clear()
    m.second_order.clear()
    m.backwards.clear()
    m.finished.begin()
    m.sent.clear()
    m.repeated.clear()
    frame = m.frame
    assert callable(act)
    try:
        act()
        cuts.finish(m)
        savers.settle(m)
        finished.finish(m)
        never_reached.finish(m)
        repeated_copies.finish(m)
    except (OutOfBudget, RecursionError):
        m.gave_up += 1
    finally:
        m.frame = frame


def _start(
    m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, cls: Class | None, scope: dict[str, Value]
) -> object:
    return lambda: _root(m, node, cls, scope)


def _root(
    m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, cls: Class | None, scope: dict[str, Value]
) -> None:
    """Interpret one function with arguments of which nothing is known."""
    receiver = _instance(m, cls) if cls is not None else None
    label = f"{cls.node.name}.{node.name}" if cls is not None else node.name
    function = Function(node, m.source, (scope,), receiver, cls)
    frame = Frame(m.source, {}, (scope,), label)
    frame.owner, frame.self_value = cls, receiver
    frame.node = node
    frame.trusted = _is_trusted(node, cls) and not (
        m.source.only_runs or any(m.source.holds(node, words) for words in _SAYS)
    )
    for decorator in node.decorator_list:
        switched = grad_mode(m, decorator)
        m.grad_on = m.grad_on if switched is None else switched
    if cls is not None and cls.kind in ("function", "optimizer"):
        m.grad_on = False
    bind_parameters(m, frame, function, [], {}, m.thing())
    _mark_parameters(frame, node)
    m.frame = frame
    m.journal = []
    m.graphs.begin(from_top=False, first_storage=m.past.newest)
    m.block(node.body)
    for value in frame.returns:
        for memory in memories(value):
            cuts.used(m, memory)
            if "loss" in node.name.lower():
                leaks.looked_at(m, memory, None)
    _take_back(m)


def _take_back(m: Machine) -> None:
    """What a method assigned to `self` is unknown again for the next one."""
    for scope, name, old in reversed(m.journal or []):
        if old is None:
            scope.pop(name, None)
        else:
            scope[name] = old
    m.journal = None


def _is_trusted(node: ast.FunctionDef | ast.AsyncFunctionDef, cls: Class | None) -> bool:
    if _UNTRUSTED.search(node.name.lower()):
        return False
    if cls is not None and _UNTRUSTED_CLASS.search(cls.node.name.lower()):
        return False
    if cls is not None and cls.kind != "module":
        return "loss" in node.name.lower() or (cls.kind == "" and "loss" in cls.node.name.lower())
    return _TRUSTED.search(node.name.lower()) is not None if cls is not None else "loss" in node.name.lower()


def _mark_parameters(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """In a forward, arguments are floats of the graph unless their name or default says otherwise."""
    spec = node.args
    plain = {parameter.arg for parameter in (*spec.posonlyargs, *spec.args)}
    if spec.defaults:
        plain -= {parameter.arg for parameter in (*spec.posonlyargs, *spec.args)[-len(spec.defaults) :]}
    for name, value in frame.scope.items():
        if type(value) is Memory:
            likely = frame.trusted and name in plain and not _DATA.search(name.lower())
            value.grad = LIKELY if likely else UNKNOWN
            value.label = name


def _instance(m: Machine, cls: Class) -> Instance:
    """An object of the class, built from arguments of which nothing is known."""
    known = m.instances.get(id(cls))
    if known is None:
        trained, m.journal = m.journal, None
        built = modules.construct(m, cls, Arguments([], {}, m.thing()), cls.node)
        m.journal = trained
        known = built if isinstance(built, Instance) else Instance(cls, m.past.storage())
        m.instances[id(cls)] = known
    return known
