"""An array handed out again and again by its owner, who refills it: the old one is the new one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensafe.facts import Kind, Moment
from tensafe.facts import Value as Fact
from tensafe.static.aliasing.writing import moment_in, shares
from tensafe.static.hazards import memories
from tensafe.static.machine import Machine
from tensafe.static.values import ARRAY, TENSOR, Frame, Instance, Memory, Value
from tensafe.syntax.chains import alias_of
from tensafe.syntax.reading import dotted


def handed_out(m: Machine, callee: Frame, caller: Frame, result: Value, since: int, call: ast.AST) -> None:
    """A method returned: was its result refilled meanwhile, and does the caller hold it as the old one?"""
    owner = callee.self_value
    if type(owner) is not Instance or not isinstance(call, ast.Call):
        return
    for memory in memories(result, 2):
        if memory.kind not in (ARRAY, TENSOR) or not memory.exact or len(memory.storages) > 1:
            continue
        written = _refilled(m, memory, since)
        name = next((name for name, held in owner.attributes.items() if shares(held, memory)), "")
        if written is not None and name:
            _look(m, callee, caller, memory, f"self.{name}", written, call)


def _refilled(m: Machine, memory: Memory, since: int) -> Moment | None:
    """The write with which the call gave the array other values."""
    for write in reversed(m.past.writes.get(memory.storages[0], [])):
        if write.moment.order <= since:
            return None
        if write.moment.op.endswith(("__setitem__", "copy_", "copyto", "fill", "fill_")):
            return write.moment
    return None


def _look(
    m: Machine, callee: Frame, caller: Frame, memory: Memory, name: str, written: Moment, call: ast.Call
) -> None:
    """Whether the caller reads the array again under the name of the old one, before it binds that anew."""
    line = next((value for value in m.books.syntax(callee.node).returned if _gives(value, name)), None)
    syntax = m.books.syntax(caller.node)
    statement = syntax.statement(call)
    if line is None or not isinstance(statement, ast.Assign):
        return
    bound = [dotted(target) for target in statement.targets if isinstance(target, ast.Name | ast.Attribute)]
    for old in _names(caller, memory):
        if old in bound or not _is_followed(syntax.scope, statement, old):
            continue
        read = syntax.read_after(statement, old)
        if read is not None and m.books.tells((callee.source.path, "refilled", line.lineno)):
            trail = (written, moment_in(m, caller, Kind.COPIED, "", read))
            values = {"memory": Fact(frozenset(), trail)}
            m.put(Kind.EXPORTED, "", line, callee, values, note="refilled")
            return


def _gives(value: ast.expr, name: str) -> bool:
    """Whether a return statement hands the attribute out as it is."""
    for part in value.elts if isinstance(value, ast.Tuple | ast.List) else [value]:
        alias = alias_of(part)
        if alias is not None and dotted(alias[0]) == name:
            return True
    return False


def _names(frame: Frame, memory: Memory) -> Iterator[str]:
    """The names and own attributes under which a frame has this memory."""
    for name, value in frame.scope.items():
        if shares(value, memory):
            yield name
    if type(frame.self_value) is Instance:
        for name, value in frame.self_value.attributes.items():
            if shares(value, memory):
                yield f"self.{name}"


def _is_followed(scope: ast.AST, statement: ast.stmt, old: str) -> bool:
    """Whether `old = new` is still to come, which says that the two are taken for two."""
    return any(
        isinstance(node, ast.Assign)
        and node.lineno > statement.lineno
        and any(isinstance(one, ast.Name | ast.Attribute) and dotted(one) == old for one in node.targets)
        and isinstance(node.value, ast.Name | ast.Attribute)
        for node in ast.walk(scope)
    )
