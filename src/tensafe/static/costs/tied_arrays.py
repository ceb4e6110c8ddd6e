"""Archives of arrays, one for each entry of a state dict: tied weights are written once for each name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensafe.facts import Kind, StorageId
from tensafe.facts import Value as Fact
from tensafe.static import around
from tensafe.static.arguments import Arguments
from tensafe.static.machine import Machine
from tensafe.static.values import ARRAY, Instance, Layer, Memory, Value


def saved(m: Machine, op: str, given: Arguments, node: ast.Call) -> None:
    """`np.savez(path, **arrays)`: ask where they are all the entries of a model with tied weights."""
    spread = [word.value for word in node.keywords if word.arg is None]
    value = given.rest
    if len(spread) != 1 or type(value) is not Memory or value.kind != ARRAY or not value.exact:
        return
    owner = _owner(value)
    if owner is None or not _is_tied(owner) or not _takes_all(m, spread[0]):
        return
    fact = Fact(frozenset(map(StorageId, value.storages)), (), owner.cls.node.name)
    m.put(Kind.SERIALISED, op, node, m.frame, {"saved": fact})


def _owner(value: Memory) -> Instance | None:
    """The model whose state these arrays are; those of several rounds stand together."""
    while value.owner is None and value.joined and value.parents:
        value = value.parents[0]
    return value.owner if type(value.owner) is Instance else None


def _is_tied(model: Instance) -> bool:
    """Whether one parameter is found in two places of the model."""
    found = list(_parameters(model, {id(model)}))
    return len(found) != len(set(map(id, found)))


def _parameters(owner: Instance | Layer, seen: set[int]) -> Iterator[Memory]:
    inner: list[Value] = [*owner.attributes.values(), *(owner.children if type(owner) is Layer else [])]
    for value in inner:
        if type(value) is Memory and value.leaf:
            yield value
        elif isinstance(value, Instance | Layer) and id(value) not in seen:
            seen.add(id(value))
            yield from _parameters(value, seen)


def _takes_all(m: Machine, arrays: ast.expr) -> bool:
    """Whether every entry is taken, with no condition that may leave one of two tied entries out."""
    if isinstance(arrays, ast.DictComp):
        return not arrays.generators[0].ifs
    if not isinstance(arrays, ast.Name):
        return False
    scope = around.function_around(m.frame.source, arrays)
    stores = [one for one in ast.walk(scope) if isinstance(one, ast.Assign) and _fills(one, arrays.id)]
    return len(stores) == 1 and _is_unconditional(m, stores[0])


def _fills(statement: ast.Assign, name: str) -> bool:
    target = statement.targets[0]
    if isinstance(target, ast.Subscript):
        return isinstance(target.value, ast.Name) and target.value.id == name
    filled = isinstance(statement.value, ast.DictComp)
    return filled and isinstance(target, ast.Name) and target.id == name


def _is_unconditional(m: Machine, statement: ast.Assign) -> bool:
    if isinstance(statement.value, ast.DictComp):
        return not statement.value.generators[0].ifs
    block = around.block_of(m.frame.source, statement)
    return not any(isinstance(one, ast.If | ast.Try | ast.Match) for one in block)
