"""Live references kept on `self` by one method and restored by another, whatever runs in between."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensafe.facts import Kind, Moment
from tensafe.ops import words
from tensafe.static.machine import Machine
from tensafe.static.values import Class, Frame, State

# An optimizer's or a scheduler's state is rebuilt by each call, and often empty when it is kept.
_MODEL = re.compile(
    r"model|net|module|policy|actor|critic|encoder|decoder|generator|discriminator|backbone|classifier|learner"
    r"|^self$",
    re.IGNORECASE,
)
# What a class says when it, or its caller, writes the parameters where they are between the two methods.
_TRAINS = words("train epoch step optim fit( loss best patience copy_( add_( mul_( sub_( lerp_( fill_(")
Method = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Kept:
    """`self.name = model.state_dict()`: where, and of which model as it is spelled."""

    name: str
    model: str
    node: ast.expr
    method: Method


def look(m: Machine, cls: Class) -> None:
    """Ask about every attribute that keeps a live state and is loaded back into the same model."""
    if not any(m.source.holds(cls.node, word) for word in ("state_dict(", "named_parameters(")):
        return
    kept = [one for method in cls.methods.values() for one in _kept_in(method)]
    kept = [one for one in kept if _MODEL.search(one.model) and "optim" not in one.model.lower()]
    changed = {name for method in cls.methods.values() for name in _changed_in(method)}
    kept = [one for one in kept if one.name not in changed]
    if not kept or not any(m.source.holds(cls.node, word) for word in _TRAINS):
        return  # what gives a parameter new data, `p.data = q`, leaves what was kept as it is
    for method in cls.methods.values():
        for name, model, node in _restored_in(method, {one.name for one in kept}):
            for one in kept:
                if one.name == name and one.model == model and one.method is not method:
                    _ask(m, cls, one, method, node)


def _ask(m: Machine, cls: Class, kept: Kept, method: Method, node: ast.Call) -> None:
    frame = Frame(m.source, {}, (), f"{cls.node.name}.{kept.method.name}")
    outer, m.frame = m.frame, frame
    moment = m.moment(Kind.KEPT, "Module.state_dict", kept.node)
    write = Moment(Kind.WRITTEN, "Optimizer.step", None, m.past.tick())
    frame.label = f"{cls.node.name}.{method.name}"
    model = m.thing()
    m.past.modules.update(model.storages)  # by its name
    m.ask_kept(Kind.RESTORED, node, State("state_dict", model, (m.past.storage(),), (moment,)), write, "")
    m.frame = outer


def _kept_in(method: Method) -> Iterator[Kept]:
    last: dict[str, Kept | None] = {}
    for statement in ast.walk(method):
        if not isinstance(statement, ast.Assign):
            continue
        for target in statement.targets:
            name = _attribute_of_self(target)
            if name:
                live = _live(statement.value)
                last[name] = Kept(name, live[0], live[1], method) if live else None
    yield from (one for one in last.values() if one is not None)


def _changed_in(method: Method) -> Iterator[str]:
    """The attributes whose entries a method replaces: what they keep is not live alone."""
    for node in ast.walk(method):
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr in ("update", "setdefault", "pop"):
            yield _attribute_of_self(func.value)


def _attribute_of_self(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return ""


def _live(node: ast.expr) -> tuple[str, ast.expr] | None:
    """The model whose live state an expression gives, and the expression to blame."""
    state = _state_of(node)
    if state is not None:
        return ast.unparse(state), node
    if isinstance(node, ast.DictComp) and len(node.generators) == 1 and not node.generators[0].ifs:
        return _live_comprehension(node)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in (
        "dict",
        "OrderedDict",
        "collections.OrderedDict",
    ):
        return _live(node.args[0]) if len(node.args) == 1 else None
    return None


def _state_of(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict":
        return node.func.value if not node.args and not node.keywords else None
    return None


def _live_comprehension(node: ast.DictComp) -> tuple[str, ast.expr] | None:
    """`{k: v for k, v in model.state_dict().items()}`, the values as they are."""
    generator = node.generators[0]
    target, iterated = generator.target, generator.iter
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(target.elts[1], ast.Name):
        return None
    if not isinstance(iterated, ast.Call) or not isinstance(iterated.func, ast.Attribute):
        return None
    value: ast.expr = node.value
    while isinstance(value, ast.Attribute) and value.attr == "data":
        value = value.value
    if not isinstance(value, ast.Name) or value.id != target.elts[1].id:
        return None
    if iterated.func.attr == "items":
        state = _state_of(iterated.func.value)
        return (ast.unparse(state), node) if state is not None else None
    return (ast.unparse(iterated.func.value), node) if iterated.func.attr == "named_parameters" else None


def _restored_in(method: Method, names: set[str]) -> Iterator[tuple[str, str, ast.Call]]:
    """The attributes that a method loads back: (attribute, model, call)."""
    for node in ast.walk(method):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            name = _attribute_of_self(node.args[0])
            if name in names and node.func.attr == "load_state_dict":
                yield name, ast.unparse(node.func.value), node
            elif name in names and node.func.attr == "copy_":
                model = _iterated_model(method)
                if model:
                    yield name, model, node


def _iterated_model(method: Method) -> str:
    """The model whose parameters a method goes through."""
    for node in ast.walk(method):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            func = node.iter.func
            if isinstance(func, ast.Attribute) and func.attr == "named_parameters":
                return ast.unparse(func.value)
    return ""
