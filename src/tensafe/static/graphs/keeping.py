"""Where a live tensor is put into a list, an attribute or a returned tuple."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tensafe.facts import Kind
from tensafe.static.graphs.known import here
from tensafe.static.values import TENSOR, YES, Constant, Library, Mapping, Memory, Sequence, Value

if TYPE_CHECKING:
    from tensafe.static.arguments import Arguments
    from tensafe.static.machine import Machine


def kept_in_list(m: Machine, name: str, given: Arguments, node: ast.Call) -> None:
    """`values.append(tensor)`."""
    if name in ("append", "insert", "extend") and given.positional:
        _keep(m, given.positional[-1], node)


def kept_on(m: Machine, value: Value, statement: ast.stmt) -> None:
    """`self.name = tensor`."""
    _keep(m, value, statement)
    if type(value) is Sequence and value.kind == "generator" and not value.trail:
        value.trail = (m.moment(Kind.KEPT, "generator", statement),)


def returned(m: Machine, value: Sequence, node: ast.Return) -> None:
    """`return number, tensor`."""
    for item in value.items:
        if type(item) is Memory and item.kept is None:
            _keep(m, item, node)


def _keep(m: Machine, value: Value, node: ast.AST) -> None:
    if type(value) is Memory and value.kind == TENSOR and value.grad == YES:
        value.kept = here(m, "", node)


def default_dict(given: Arguments) -> Mapping:
    """`defaultdict(list)`."""
    made = Mapping({})
    factory = given.positional[0] if given.positional else None
    if type(factory) is Library and factory.path in ("builtins.list", "builtins.dict"):
        made.factory = factory.path.rpartition(".")[2]
    return made


def default_of(owner: Mapping, index: Value) -> Value:
    """What stands under a key of a `defaultdict` that was not there."""
    made: Value = Sequence([]) if owner.factory == "list" else Mapping({})
    if type(index) is Constant:
        owner.items[index.value] = made
        return made
    if owner.rest is None:
        owner.rest = made
    return owner.rest
