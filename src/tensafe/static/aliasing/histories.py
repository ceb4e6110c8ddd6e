"""Views of one memory that are collected as a history, though it is rewritten in between."""

from __future__ import annotations

import ast

from tensafe.facts import Kind, Moment
from tensafe.facts import Value as Fact
from tensafe.static.aliasing.books import Bound, Collected
from tensafe.static.hazards import memories
from tensafe.static.machine import Machine
from tensafe.static.values import ARRAY, TENSOR, Memory, Value
from tensafe.syntax.chains import alias_of, loop_over, made_from
from tensafe.syntax.reading import Syntax, dotted

_PARTS = frozenset({"narrow", "select", "diagonal"})
_EXPORTS = ("Tensor.numpy", "torch.from_numpy", "torch.as_tensor")


def collected(m: Machine, container: Value, value: Value, node: ast.Call) -> None:
    """`history.append(x)`: the second time, `x` may be the same memory with other values."""
    for memory in memories(value, 2):
        if memory.kind in (TENSOR, ARRAY) and memory.storages and not memory.joined:
            _once_more(m, container, memory, node)
            return


def _once_more(m: Machine, container: Value, memory: Memory, node: ast.Call) -> None:
    before = m.books.collected.get(node)
    storage = memory.storages[0]
    m.books.collected[node] = Collected(storage, m.moment(Kind.KEPT, "", node), container)
    if before is None or before.storage != storage or before.container is not container:
        return
    write = m.past.last_write((storage,), before.moment, m.path)
    if write is None or write.moment.site is None or _is_part(m, node):
        return
    exported = next((one for one in memory.trail if one.kind is Kind.EXPORTED and one.op in _EXPORTS), None)
    if exported is not None:
        _tell_array(m, memory, node, write.moment)
    elif (
        memory.kind == TENSOR
        and memory.exact
        and _is_plain(node)
        and not (memory.leaf and memory.owner is not None)
    ):
        _tell_tensor(m, node, write.moment)


def _is_part(m: Machine, node: ast.Call) -> bool:
    """Whether each round may collect another part of one tensor: an item of a loop, or under an index."""
    syntax = m.books.syntax(m.frame.node)
    value: ast.expr | None = node.args[-1] if node.args else None
    line = node.lineno
    for _ in range(4):
        if value is None or any(isinstance(part, ast.Subscript) for part in ast.walk(value)):
            return True
        alias = alias_of(value)
        if alias is not None and _PARTS & set(alias[1]):
            return True
        root = alias[0] if alias is not None else None
        if root is None or loop_over(syntax, root, dotted(root)) is not None:
            return root is not None
        origin = made_from(syntax, dotted(root), line)
        if origin is None:
            return _is_made_in_loop(syntax, node, dotted(root))
        if origin.statement is None or dotted(origin.root) == dotted(root):
            return False
        value, line = getattr(origin.statement, "value", None), origin.statement.lineno - 1
    return False


def _is_made_in_loop(syntax: Syntax, node: ast.AST, name: str) -> bool:
    """Whether each round of the loop around a node gives the name what some call returns."""
    here = syntax.parents.get(node)
    while here is not None and not isinstance(here, ast.For | ast.While):
        here = syntax.parents.get(here)
    if here is None:
        return False
    first, last = here.lineno, here.end_lineno or here.lineno
    return any(first <= statement.lineno <= last for statement, _ in syntax.assignments(name))


def _is_plain(node: ast.Call) -> bool:
    """Whether a tensor is collected as it is, under its name or detached."""
    value = node.args[-1] if node.args else None
    alias = alias_of(value) if value is not None else None
    return alias is not None and not any(isinstance(part, ast.Subscript) for part in ast.walk(node.args[-1]))


def _tell_array(m: Machine, memory: Memory, node: ast.Call, write: Moment) -> None:
    if m.books.tells((m.frame.source.path, "history", node.lineno)):
        values = {"memory": Fact(frozenset(), (write,))}
        note = "tensors" if memory.kind == TENSOR else "arrays"
        m.put(Kind.EXPORTED, "", _kept(node), m.frame, values, note=note)


def _tell_tensor(m: Machine, node: ast.Call, write: Moment) -> None:
    if m.books.tells((m.frame.source.path, node.lineno)):
        label = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        values = {"alias": Fact(frozenset(), (write,), label)}
        m.put(Kind.WRITTEN, write.op, _kept(node), m.frame, values, note="kept")


def _kept(node: ast.Call) -> ast.AST:
    return node.args[-1] if node.args else node


def bound(m: Machine, name: str, value: Memory, statement: ast.stmt) -> None:
    """`before = w.numpy()`, then a step, then `after = w.numpy()`: the two are one array."""
    if not isinstance(statement, ast.Assign) or not _is_export(statement.value):
        return
    key = value.storages[0], id(m.frame.node)
    first = m.books.arrays.get(key)
    if first is None or first.name == name:
        m.books.arrays[key] = Bound(name, statement.value, m.moment(Kind.KEPT, "", statement))
        return
    write = m.past.last_write(value.storages[:1], first.moment, m.path)
    if write is None or m.books.syntax(m.frame.node).read_after(statement, first.name) is None:
        return
    if m.books.tells((m.frame.source.path, "history", first.node.lineno)):
        values = {"memory": Fact(frozenset(), (write.moment,))}
        m.put(Kind.EXPORTED, "", first.node, m.frame, values, note="arrays")


def _is_export(node: ast.expr) -> bool:
    """Whether an expression ends in `.numpy()`: a `.copy()` at the end makes another array."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy"
