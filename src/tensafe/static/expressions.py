"""Expressions other than calls."""

from __future__ import annotations

import ast

from tensafe.ops import words
from tensafe.static import around, operations, snapshots
from tensafe.static.aliasing import repeats
from tensafe.static.assignment import store
from tensafe.static.conditions import compare, key_of, truth
from tensafe.static.costs import kept_parts
from tensafe.static.hazards import memories
from tensafe.static.iteration import items_of, rounds
from tensafe.static.joins import join
from tensafe.static.machine import Machine
from tensafe.static.reexports import starred
from tensafe.static.values import (
    NOTHING_KNOWN,
    Constant,
    Function,
    Library,
    Mapping,
    Memory,
    Sequence,
    Value,
)

BUILTINS = words(
    """
    list tuple dict set zip enumerate reversed sorted map filter len range sum min max abs isinstance
    getattr setattr hasattr print iter next float int bool str super type vars id any all round pow repr open
    """
)


def name(m: Machine, node: ast.Name) -> Value:
    found = m.look_up(node.id)
    if found is not None:
        if m.touched is not None:
            touch(m, node, found)
        return found
    if node.id in BUILTINS:
        return Library(f"builtins.{node.id}")
    return starred(m, node.id) or NOTHING_KNOWN


def touch(m: Machine, node: ast.AST, value: Value) -> None:
    for memory in memories(value):
        if m.touched is not None:
            m.touched(node, memory)


def constant(m: Machine, node: ast.Constant) -> Value:
    return Constant(node.value)


def sequence(m: Machine, node: ast.Tuple | ast.List | ast.Set) -> Value:
    kind = "tuple" if isinstance(node, ast.Tuple) else "list"
    made = Sequence([], None, kind)
    for element in node.elts:
        if not isinstance(element, ast.Starred):
            made.items.append(m.eval(element))
            continue
        value = m.eval(element.value)
        items = items_of(m, value)
        if items is not None:
            made.items += items
        else:
            if made.rest is not None:
                made.items.append(made.rest)  # of an earlier one: one stands for all
            made.rest = rounds(m, value)[1]
    return made


def mapping(m: Machine, node: ast.Dict) -> Value:
    made = Mapping({})
    for key, value_node in zip(node.keys, node.values, strict=True):
        value = m.eval(value_node)
        if key is None:
            _spread(made, value)
            continue
        known = m.eval(key)
        if type(known) is Constant and isinstance(known.value, str | int | float | bytes | None.__class__):
            made.items[known.value] = value
        else:
            made.rest = value if made.rest is None else join(made.rest, value)
    return made


def _spread(made: Mapping, value: Value) -> None:
    if type(value) is Mapping:
        made.items.update(value.items)
        made.rest = made.rest or value.rest
    else:
        made.rest = made.rest or value


def binary(m: Machine, node: ast.BinOp) -> Value:
    return operations.operator(m, node.op, m.eval(node.left), m.eval(node.right), node)


def unary(m: Machine, node: ast.UnaryOp) -> Value:
    value = m.eval(node.operand)
    if isinstance(node.op, ast.Not):
        return NOTHING_KNOWN
    if type(value) is Constant and isinstance(node.op, ast.USub) and isinstance(value.value, int | float):
        return Constant(-value.value)
    return operations.elementwise(m, "neg", [value], node)


def boolean(m: Machine, node: ast.BoolOp) -> Value:
    value: Value | None = None
    is_and = isinstance(node.op, ast.And)
    for operand in node.values:
        one = m.eval(operand)
        known = truth(m, operand, one)
        if known is not None and known != is_and:
            return one if value is None else join(value, one)
        if known is None:
            value = one if value is None else join(value, one)
        last = one
    return value if value is not None else last


def comparison(m: Machine, node: ast.Compare) -> Value:
    left = m.eval(node.left)
    rights = [m.eval(one) for one in node.comparators]
    if len(rights) == 1:
        known = compare(m, node, left, rights[0])
        if known is not None:
            return Constant(known)
    if isinstance(node.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn):
        return NOTHING_KNOWN  # whether two are one object, not whether they are equal
    snapshots.compared(m, left, rights[0], node)
    return operations.comparison(m, [left, *rights], node)


def conditional(m: Machine, node: ast.IfExp) -> Value:
    known = truth(m, node.test, m.eval(node.test))
    if known is not None:
        return m.eval(node.body if known else node.orelse)
    key, taken = key_of(m, node.test)
    with m.arm(key, taken):
        one = m.eval(node.body)
    with m.arm(key, not taken):
        other = m.eval(node.orelse)
    return join(one, other)


def comprehension(m: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    found: list[Value] = []
    exact = _generate(m, node.generators, lambda: found.append(_item(m, node.elt, node)), node)
    made = Sequence(found) if exact else Sequence(found[:1], found[-1] if found else NOTHING_KNOWN)
    repeats.comprehended(m, made, node)
    snapshots.collected(m, made, node)
    if isinstance(node, ast.GeneratorExp):
        made.kind = "generator"
    return made


def dict_comprehension(m: Machine, node: ast.DictComp) -> Value:
    found: list[tuple[Value, Value]] = []
    _generate(m, node.generators, lambda: found.append((m.eval(node.key), _item(m, node.value, node))), node)
    made = Mapping({}, found[-1][1] if found else NOTHING_KNOWN)
    repeats.comprehended(m, made, node)
    snapshots.collected(m, made, node)
    return made


def _item(m: Machine, node: ast.expr, loop: around.Loop) -> Value:
    value = m.eval(node)
    return kept_parts.collected(m, value, loop) if type(value) is Memory else value


def _generate(m: Machine, generators: list[ast.comprehension], element: object, node: ast.expr) -> bool:
    """Evaluate the element for each round; true when there is one round for each item."""
    frame = m.frame
    outer, closure = frame.scope, frame.closure
    frame.scope, frame.closure = {}, (outer, *closure)
    path, began = m.path, m.round_began
    try:
        return _nested(m, generators, element, node)
    finally:
        frame.scope, frame.closure = outer, closure
        m.path, m.round_began = path, began


def _nested(m: Machine, generators: list[ast.comprehension], element: object, node: ast.expr) -> bool:
    generator = generators[0]
    value = m.eval(generator.iter)
    items = items_of(m, value)
    exact = items is not None and len(items) <= 3 and not generator.ifs and len(generators) == 1
    for item in rounds(m, value):
        m.budget -= 1
        m.round_began = m.past.newest
        store(m, generator.target, item, node)  # type: ignore[arg-type]
        for condition in generator.ifs:
            m.eval(condition)
        if len(generators) > 1:
            _nested(m, generators[1:], element, node)
        elif callable(element):
            element()
    return exact


def lambda_(m: Machine, node: ast.Lambda) -> Value:
    return Function(node, m.frame.source, (m.frame.scope, *m.frame.closure))


def walrus(m: Machine, node: ast.NamedExpr) -> Value:
    value = m.eval(node.value)
    m.bind(m.frame.scope, node.target.id, value)
    return value


def inner(m: Machine, node: ast.Await | ast.Starred | ast.YieldFrom) -> Value:
    return m.eval(node.value)


def yields(m: Machine, node: ast.Yield) -> Value:
    if node.value is not None:
        value = m.eval(node.value)
        if m.frame.yields is None:
            m.frame.yields = []
        m.frame.yields.append(value)
    return NOTHING_KNOWN
