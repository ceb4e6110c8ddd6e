"""In-place layers that overwrite an input which somebody still reads: a skip, a collected feature."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensafe.facts import Kind, Moment
from tensafe.static.aliasing.writing import Writing, moment_in, shares
from tensafe.static.hazards import memories
from tensafe.static.machine import Machine
from tensafe.static.values import Mapping, Sequence, Value
from tensafe.syntax.chains import alias_of, made_from
from tensafe.syntax.reading import Syntax, binds, dotted

_KEEPERS = frozenset({"append", "insert", "add", "extend", "setdefault"})


def overwritten_input(at: Writing) -> bool:
    """`out = self.act(x)`, and `x` is read afterwards as if it were unchanged."""
    if not at.by_layer or not isinstance(at.node, ast.Call) or isinstance(at.statement, ast.Expr | None):
        return False
    for argument in at.node.args:
        if not isinstance(argument, ast.Name | ast.Attribute):
            continue
        if not shares(_named(at, argument), at.target):
            continue
        name = dotted(argument)
        if _kept_name_read(at, at.node, name) or _read_again(at, at.node, argument, name):
            return True
    return _collected(at)


def _named(at: Writing, node: ast.expr) -> Value | None:
    return at.frame.scope.get(node.id) if isinstance(node, ast.Name) else None


def _read_again(at: Writing, call: ast.Call, argument: ast.expr, name: str) -> bool:
    assert at.statement is not None
    later = _reads_later(at, call, name, argument)
    if later is None:
        if binds(at.statement, name) or isinstance(at.statement, ast.Return):
            return False
        later = at.syntax.read_after(at.statement, name)
    return later is not None and at.tell("layer", (*made_inplace(at), at.read(later)), name)


def _reads_later(at: Writing, call: ast.Call, name: str, argument: ast.AST | None = None) -> ast.expr | None:
    """A read of the name in the same statement, to the right of the call."""
    assert at.statement is not None
    for node in at.syntax.reads(at.statement, name):
        if _is_in_other_arm(at, node, call):
            continue
        if node is not argument and (node.lineno, node.col_offset) > (call.lineno, call.col_offset):
            return node
    return None


def _is_in_other_arm(at: Writing, node: ast.expr, call: ast.Call) -> bool:
    """Whether `a if test else b` evaluates either the one or the other."""
    here: ast.AST | None = node
    while here is not None and here is not at.statement:
        around = at.syntax.parents.get(here)
        if isinstance(around, ast.IfExp) and here is around.orelse:
            return any(part is call for part in ast.walk(around.body))
        here = around
    return False


def _kept_name_read(at: Writing, call: ast.Call, name: str) -> bool:
    """`identity = x; x = self.act(x)`, and `identity` is read afterwards as if it were unchanged."""
    assert at.statement is not None
    for kept, value in at.frame.scope.items():
        if kept == name or not shares(value, at.target):
            continue
        origin = made_from(at.syntax, kept, at.statement.lineno - 1)
        if origin is None or dotted(origin.root) != name or origin.makers:
            continue
        read = _reads_later(at, call, kept) or at.syntax.read_after(at.statement, kept)
        if read is not None:
            return at.tell("layer", (*made_inplace(at), at.read(read)), kept)
    return False


def told(m: Machine, node: ast.Call) -> Moment:
    """The call, here or around, that says `inplace=True` itself."""
    for call, frame in ((node, m.frame), *reversed(m.called_from)):
        if isinstance(call, ast.Call) and any(
            isinstance(value, ast.Constant) and value.value is True
            for value in (*call.args, *(keyword.value for keyword in call.keywords))
        ):
            return moment_in(m, frame, Kind.MADE, "", call)
    return m.moment(Kind.MADE, "", node)


def made_inplace(at: Writing) -> tuple[Moment, ...]:
    """Where the layer was told to work in place."""
    made = at.m.books.inplace
    return (made,) if made is not None else ()


def _collected(at: Writing) -> bool:
    """The input was put into a list before, which is read afterwards."""
    assert at.statement is not None
    for name, container in at.frame.scope.items():
        if type(container) is not Sequence and type(container) is not Mapping:
            continue
        if not any(shares(item, at.target) and item.exact for item in memories(container)):
            continue
        kept = next(_kept_at(at.syntax, name), None)
        if kept is None or at.syntax.read_after(at.statement, name) is None:
            continue
        written = moment_in(at.m, at.frame, Kind.WRITTEN, at.op, at.node)
        return at.tell("collected", (*made_inplace(at), written), name, at=kept)
    return False


def _kept_at(syntax: Syntax, name: str) -> Iterator[ast.AST]:
    """The statements that put a tensor as it is into the list or dict of this name."""
    for node in syntax.own:
        kept, value = container_of(node)
        if kept is not None and value is not None and dotted(kept) == name and alias_of(value) is not None:
            yield node


def container_of(node: ast.AST) -> tuple[ast.expr | None, ast.expr | None]:
    """The container, or attribute, that a node puts a value into, and the value."""
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            return target.value, node.value
        return (target, node.value) if isinstance(target, ast.Attribute) else (None, None)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPERS:
        return node.func.value, node.args[-1] if node.args else None
    return None, None
