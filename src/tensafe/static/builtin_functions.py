"""Python's builtins, as far as they pass tensors on."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tensafe.static import snapshots
from tensafe.static.aliasing import repeats
from tensafe.static.arguments import Arguments
from tensafe.static.attributes import cut_here, read
from tensafe.static.calls import dispatch
from tensafe.static.graphs import finished
from tensafe.static.iteration import item_at, items_of, rounds
from tensafe.static.joins import join_all
from tensafe.static.machine import Machine
from tensafe.static.operations import cuts_of, elementwise, operator, tensors_of
from tensafe.static.unknowns import unknown
from tensafe.static.values import (
    NOTHING_KNOWN,
    Constant,
    Instance,
    Layer,
    Library,
    Mapping,
    Memory,
    Scalar,
    Sequence,
    State,
    Value,
)


def call(m: Machine, name: str, given: Arguments, node: ast.Call) -> Value:
    """The result of a builtin of this name."""
    function = _BUILTINS.get(name)
    return function(m, given, node) if function else NOTHING_KNOWN


def listed(m: Machine, value: Value, kind: str = "list") -> Value:
    """A list with the items of `value`."""
    items = items_of(m, value)
    if items is not None:
        return Sequence(list(items), None, kind)
    first, other = rounds(m, value)
    return Sequence([first], other, kind)


def _list(m: Machine, given: Arguments, node: ast.Call) -> Value:
    if not given.positional:
        return Sequence([])
    value = given.positional[0]
    made = listed(m, value)
    if type(value) is State and type(made) is Sequence:
        snapshots.collected(m, made, node)
    return made


def _dict(m: Machine, given: Arguments, node: ast.Call) -> Value:
    if given.positional:
        value = given.positional[0]
        if type(value) is Mapping:
            return Mapping(dict(value.items), value.rest)
        if type(value) is State and value.kind == "state_dict":
            return value
        pair = rounds(m, value)
        last = pair[-1] if pair else NOTHING_KNOWN
        made = Mapping({}, last.items[1] if type(last) is Sequence and len(last.items) == 2 else last)
        snapshots.collected(m, made, node)
        return made
    items: dict[object, Value] = {}
    items.update(given.keywords)
    return Mapping(items, given.rest)


def _fromkeys(m: Machine, given: Arguments, node: ast.Call) -> Value:
    value = given.get(1, "value")
    return NOTHING_KNOWN if value is None else Mapping({}, repeats.repeated(m, value, node))


def _zip(m: Machine, given: Arguments, node: ast.Call) -> Value:
    if given.rest is not None or not given.positional:
        rest = item_at(m, given.rest, 0) if given.rest is not None else NOTHING_KNOWN
        return Sequence([], Sequence([], rest, "tuple"))
    known = [items_of(m, value) for value in given.positional]
    lengths = {len(items) for items in known if items is not None}
    columns = [rounds(m, value) for value in given.positional]
    length = min(lengths) if lengths else 2
    length = min(length, *(len(column) for column in columns))
    rows: list[Value] = [
        Sequence([column[place] for column in columns], None, "tuple") for place in range(length)
    ]
    if all(items is not None for items in known) and max(lengths) <= 3:
        return Sequence(rows)
    return Sequence(rows[:-1], rows[-1]) if rows else Sequence([])


def _enumerate(m: Machine, given: Arguments, node: ast.Call) -> Value:
    value = given.positional[0] if given.positional else NOTHING_KNOWN
    rows: list[Value] = [Sequence([Scalar(), item], None, "tuple") for item in rounds(m, value)]
    items = items_of(m, value)
    if items is not None and len(items) <= 3:
        return Sequence(rows)
    return Sequence(rows[:-1], rows[-1]) if rows else Sequence([])


def _reversed(m: Machine, given: Arguments, node: ast.Call) -> Value:
    made = listed(m, given.positional[0] if given.positional else NOTHING_KNOWN)
    if type(made) is Sequence and made.rest is None:
        made.items.reverse()
    return made


def _map(m: Machine, given: Arguments, node: ast.Call) -> Value:
    if len(given.positional) < 2:
        return NOTHING_KNOWN
    callee, *columns = given.positional
    rows = [rounds(m, column) for column in columns]
    found: list[Value] = []
    for place in range(min(len(row) for row in rows)):
        found.append(dispatch(m, callee, Arguments([row[place] for row in rows]), node))
    return Sequence(found[:-1], found[-1]) if found else Sequence([])


def _sum(m: Machine, given: Arguments, node: ast.Call) -> Value:
    total: Value = given.positional[1] if len(given.positional) > 1 else Constant(0)
    for item in rounds(m, given.positional[0]) if given.positional else []:
        total = operator(m, ast.Add(), total, item, node)
    return total


def _extreme(m: Machine, given: Arguments, node: ast.Call) -> Value:
    values = given.positional
    if len(values) == 1:
        values = rounds(m, values[0])
    return join_all(values) if tensors_of(values) else NOTHING_KNOWN


def _range(m: Machine, given: Arguments, node: ast.Call) -> Value:
    last = (
        given.positional[0].value
        if len(given.positional) == 1 and type(given.positional[0]) is Constant
        else None
    )
    if isinstance(last, int) and 0 <= last <= 3:
        return Sequence([Constant(number) for number in range(last)])
    return Sequence([], Scalar())


def _number(m: Machine, given: Arguments, node: ast.Call) -> Value:
    value = given.positional[0] if given.positional else NOTHING_KNOWN
    if type(value) is Memory and value.grad >= 2:
        return Scalar(cut_here(m, value, "float", node))
    return Scalar(cuts_of([value]))


def _getattr(m: Machine, given: Arguments, node: ast.Call) -> Value:
    name = given.get(1, "name")
    if type(name) is Constant and isinstance(name.value, str):
        return read(m, given.positional[0], name.value, node)
    return m.thing()


def _setattr(m: Machine, given: Arguments, node: ast.Call) -> Value:
    owner, name, value = given.get(0, "obj"), given.get(1, "name"), given.get(2, "value")
    if type(owner) is Instance and type(name) is Constant and isinstance(name.value, str) and value:
        finished.chained(m, owner.attributes.get(name.value), value, node, f"{name.value}")
        m.bind(owner.attributes, name.value, value)
    return NOTHING_KNOWN


def _hasattr(m: Machine, given: Arguments, node: ast.Call) -> Value:
    owner, name = given.get(0, "obj"), given.get(1, "name")
    if type(owner) is Layer and type(name) is Constant and name.value == "inplace":
        return Constant(owner.op is not None and owner.op.takes_inplace)
    return NOTHING_KNOWN


def _isinstance(m: Machine, given: Arguments, node: ast.Call) -> Value:
    """Whether a layer is of a class of `torch.nn`, where both are known."""
    value, classes = given.get(0, "obj"), given.get(1, "cls")
    if type(value) is not Layer or classes is None:
        return NOTHING_KNOWN
    wanted = classes.items if type(classes) is Sequence else [classes]
    if not all(type(one) is Library and one.path.startswith("torch.nn") for one in wanted):
        return NOTHING_KNOWN
    names = {one.path.rpartition(".")[2] for one in wanted if type(one) is Library}
    return NOTHING_KNOWN if "Module" in names else Constant(value.name in names)


def _next(m: Machine, given: Arguments, node: ast.Call) -> Value:
    value = given.positional[0] if given.positional else NOTHING_KNOWN
    found = rounds(m, value)
    return found[0] if found else NOTHING_KNOWN


def _absolute(m: Machine, given: Arguments, node: ast.Call) -> Value:
    return elementwise(m, "abs", given.positional, node)


def _pow(m: Machine, given: Arguments, node: ast.Call) -> Value:
    return elementwise(m, "pow", given.positional, node)


def compared_call(m: Machine, given: Arguments, node: ast.Call) -> Value:
    """`torch.equal(a, b)` and its kin."""
    if len(given.positional) >= 2:
        snapshots.compared(m, given.positional[0], given.positional[1], node)
    return unknown(m, given)


_BUILTINS: dict[str, Callable[[Machine, Arguments, ast.Call], Value]] = {
    "list": _list,
    "tuple": _list,
    "set": _list,
    "iter": _list,
    "sorted": _list,
    "dict": _dict,
    "fromkeys": _fromkeys,
    "zip": _zip,
    "enumerate": _enumerate,
    "reversed": _reversed,
    "map": _map,
    "sum": _sum,
    "min": _extreme,
    "max": _extreme,
    "range": _range,
    "float": _number,
    "int": _number,
    "getattr": _getattr,
    "setattr": _setattr,
    "hasattr": _hasattr,
    "isinstance": _isinstance,
    "next": _next,
    "abs": _absolute,
    "pow": _pow,
    "len": lambda m, given, node: Scalar(),
}
