"""Data that lives on, in a dataset or another object, written through what was fetched of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensafe.facts import Kind, Moment
from tensafe.facts import Value as Fact
from tensafe.static.aliasing.meant import SETS, brings_data, is_meant
from tensafe.static.aliasing.writing import Writing, holds, moment_in, target_of
from tensafe.static.values import ARRAY, Frame, Instance
from tensafe.syntax.reading import dotted

_FETCHES = ("__getitem__", "__getitems__", "get_item", "getitem")


def fetched_item(at: Writing) -> bool:
    """An item of a dataset is written while it is fetched, and with it what the dataset holds."""
    fetching = [one for one in _frames(at) if getattr(one[0].node, "name", "") in _FETCHES]
    if not fetching or at.target.kind == ARRAY or dotted_root(at).startswith("self.") or not _is_used(at):
        return False
    for frame, node in fetching:
        if type(frame.self_value) is not Instance:
            continue
        name = _attribute_over(at, frame.self_value)
        if not name:
            continue
        imported = at.m.books.imported.get(at.target.storages[0])
        if imported is not None:
            return _tell_array(at, imported)
        fetched = moment_in(at.m, frame, Kind.VIEWED, "", node)
        return at.tell("dataset", (fetched,), f"self.{name}")
    return False


def converted_data(at: Writing) -> bool:
    """What another object, or the file, keeps was converted without a copy; the write lands in it."""
    imported = at.m.books.imported.get(at.target.storages[0])
    function = at.frame.node
    if imported is None or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    if at.by_layer or is_meant(function, procedures=False) or not converts(at):
        return False
    if _is_in_closure(at) and (_is_used(at) or _is_of_self(at)):
        return _tell_array(at, imported)
    for frame, _ in list(_frames(at))[1:]:
        owner = frame.self_value
        if type(owner) is Instance and owner is not at.frame.self_value and _attribute_over(at, owner):
            return at.tell("converted", (imported,))
    return False


def dotted_root(at: Writing) -> str:
    """The target as it is written, with what it is an attribute of."""
    node = target_of(at.node)
    return dotted(node) if node is not None else ""


def _is_of_self(at: Writing) -> bool:
    """Whether the target is kept on the object whose method writes it."""
    return at.name.startswith("self.") and len(at.m.called_from) > 0


def _is_in_closure(at: Writing) -> bool:
    return any(holds(at.m, value, at.target) for scope in at.frame.closure for value in scope.values())


def converts(at: Writing) -> bool:
    """Whether a write changes the values that are there, and does not fill a buffer."""
    name = at.op.rpartition(".")[2]
    if (name in SETS and not _sets_number(at)) or _is_given_out(at):
        return False
    return not brings_data(at.syntax, at.name) or at.name.startswith("self.")


def _is_given_out(at: Writing) -> bool:
    """`np.cumsum(a, out=b)` fills b, unless it computes with b, too."""
    if not isinstance(at.node, ast.Call) or not any(keyword.arg == "out" for keyword in at.node.keywords):
        return False
    return all(dotted(argument) != at.name for argument in at.node.args)


def _sets_number(at: Writing) -> bool:
    name = at.op.rpartition(".")[2]
    if isinstance(at.node, ast.AugAssign):
        return True
    statement = at.statement
    if name == "__setitem__" and isinstance(statement, ast.Assign):
        return isinstance(statement.value, ast.Constant) and not isinstance(
            statement.targets[0], ast.Attribute
        )
    return name == "masked_fill_"


def _is_used(at: Writing) -> bool:
    """Whether the item is used after the write, in the function that writes it."""
    name = at.op.rpartition(".")[2]
    if name in SETS and not _sets_number(at):
        return False
    if at.statement is None or not at.name:
        return False
    if isinstance(at.statement, ast.Return):
        return True
    return at.syntax.read_after(at.statement, at.name) is not None


def _frames(at: Writing) -> Iterator[tuple[Frame, ast.AST]]:
    """The functions at work, innermost first, with the node at which each of them is."""
    yield at.frame, at.node
    for node, frame in reversed(at.m.called_from):
        yield frame, node


def _attribute_over(at: Writing, owner: Instance) -> str:
    """The attribute in which an object holds this memory."""
    return next((name for name, value in owner.attributes.items() if holds(at.m, value, at.target)), "")


def _tell_array(at: Writing, imported: Moment) -> bool:
    """`from_numpy` never copies; a conversion does for some types and not for others."""
    if imported.note == "dtype":
        return at.tell("converted", (imported,))
    site = at.frame.source.site(at.node, at.frame.label)
    if at.m.books.tells((site.path, site.line)):
        values = {"memory": Fact(frozenset(), (imported,))}
        at.m.put(Kind.EXPORTED, at.op, at.node, at.frame, values, note="again")
    return True
