"""Arguments that a function writes in passing, while its caller goes on to read what it gave."""

from __future__ import annotations

import ast
import re

from tensafe.facts import Kind
from tensafe.static import around
from tensafe.static.aliasing.meant import (
    brings_data,
    gives_back,
    is_built_up,
    is_meant,
    is_to_be_written,
    keeps_original,
    only_converts,
)
from tensafe.static.aliasing.writing import Writing, lies_in, moment_in, shares
from tensafe.static.values import Frame, Instance, Layer, Value
from tensafe.syntax.chains import Function, Origin, alias_of, argument_for, links, parameter_of
from tensafe.syntax.reading import Syntax, binds, dotted

_EMPTY = re.compile(r"zeros|empty|full|ones|new_(zeros|empty|full|ones)")


def callers_argument(at: Writing) -> bool:
    """The write itself is asked about, once for each function."""
    function = at.frame.node
    if not at.m.called_from or at.statement is None or at.root is None:
        return False
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or is_meant(function):
        return False
    found = parameter_of(at.syntax, at.root, at.statement.lineno)
    if found is None or found[0] in ("self", "cls") or not at.syntax.returned:
        return False
    name, origin = found
    if is_to_be_written(name) or (not at.target.exact and not origin.may_copy):
        return False  # an index under a name: a copy, when it is a mask
    if _waits_for_another(at, name):
        return False
    node, frame = at.m.called_from[-1]
    if function.name == "forward" and isinstance(node, ast.Call) and not origin.makers:
        return _caller_reads(at, node, frame, function, name, origin)
    gives = gives_back(at.syntax, {name, at.name})
    if not origin.makers and (gives or not only_converts(_value_node(at), at.name)):
        return False
    if (gives and not origin.converts) or brings_data(at.syntax, at.name) or is_built_up(at.syntax, {name}):
        return False
    if keeps_original(at.syntax, name, at.statement.lineno):
        return False
    if not gives and not any(at.syntax.read_after(at.statement, text) for text in {name, at.name}):
        return False
    return isinstance(node, ast.Call) and _caller_reads(at, node, frame, function, name, origin)


def _waits_for_another(at: Writing, name: str) -> bool:
    """`if i > 0: x += y` in a loop that gives `x` another tensor: the argument may never be written."""
    loop = around.loop_around(at.frame.source, at.node)
    if loop is None or name not in around.bound_in(loop):
        return False
    here = at.syntax.parents.get(at.node)
    while here is not None and here is not loop and not isinstance(here, ast.If):
        here = at.syntax.parents.get(here)
    return isinstance(here, ast.If)


def _value_node(at: Writing) -> ast.AST:
    """The node that shows what is written: the whole statement for `x[0] = v`."""
    return at.statement if isinstance(at.node, ast.Subscript) and at.statement is not None else at.node


def _caller_reads(
    at: Writing, call: ast.Call, frame: Frame, function: Function, name: str, origin: Origin
) -> bool:
    given = argument_for(function, call, name)
    syntax = at.m.books.syntax(frame.node)
    statement = syntax.statement(call)
    if given is None or statement is None:
        return False
    for text in _spellings(at, given, frame):
        if binds(statement, text):
            return False
        read = syntax.read_after(statement, text)
        if read is not None and (_is_next_round(read, text, call, frame) or _is_key(syntax, read)):
            return False
        if read is not None and (_is_next_part(read, given, statement) or _is_to_be_filled(syntax, text)):
            return False
        if read is not None and at.m.books.tells((frame.source.path, "argument", function.lineno)):
            passed = moment_in(at.m, frame, Kind.COPIED, "", call, "passed")
            later = moment_in(at.m, frame, Kind.COPIED, "", read, "read")
            return at.tell("argument", (*at.made(origin), passed, later), text)
    return False


def _is_key(syntax: Syntax, read: ast.expr) -> bool:
    """`optimizer.state[p]` finds the parameter, whatever its values are."""
    owner = syntax.parents.get(read)
    return isinstance(owner, ast.Subscript) and owner.slice is read and dotted(owner.value).endswith(".state")


def _is_next_round(read: ast.expr, name: str, call: ast.Call, frame: Frame) -> bool:
    """Whether it is read by the same call alone, in a round of the loop that has given the name another."""
    loop = around.loop_around(frame.source, call)
    return loop is not None and name in around.bound_in(loop) and any(node is read for node in ast.walk(call))


def _is_next_part(read: ast.expr, given: ast.expr, statement: ast.stmt) -> bool:
    """Whether the next round of a loop gives another part: `scaled(weight[i])`."""
    return isinstance(given, ast.Subscript) and any(node is read for node in ast.walk(statement))


def _is_to_be_filled(syntax: Syntax, name: str) -> bool:
    """Whether the caller made the tensor empty, for the function to write into."""
    return any(
        isinstance(value, ast.Call) and _EMPTY.match(dotted(value.func).rpartition(".")[2])
        for _, value in syntax.assignments(name)
    )


def _spellings(at: Writing, given: ast.expr, frame: Frame) -> list[str]:
    """The names by which the caller knows the memory of an expression: the tensor's, its module's."""
    alias = alias_of(given)
    if alias is None:
        return []
    parts = [part for part in reversed(list(links(given))) if not isinstance(part, ast.Call)]
    for part in parts:
        value = _value(at, part, frame)
        if shares(value, at.target):
            return [dotted(part)]
        if isinstance(value, Layer | Instance) and lies_in(at.m, value, at.target):
            owner = dotted(part)
            return [owner, *([f"{owner}.{alias[0].attr}"] if isinstance(alias[0], ast.Attribute) else [])]
    return []


def _value(at: Writing, node: ast.expr, frame: Frame) -> Value | None:
    """What a name, or an attribute of an object, stands for in a frame."""
    if isinstance(node, ast.Name):
        for scope in (frame.scope, *frame.closure):
            if node.id in scope:
                return scope[node.id]
        return None
    if isinstance(node, ast.Attribute):
        owner = _value(at, node.value, frame)
        return owner.attributes.get(node.attr) if isinstance(owner, Instance | Layer) else None
    return None
