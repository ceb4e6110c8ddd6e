"""Views that PyTorch refuses, as the elements lie in another order."""

from __future__ import annotations

import ast

from tensafe.facts import Kind, Moment, StorageId
from tensafe.facts import Value as Fact
from tensafe.static import around
from tensafe.static.arguments import Arguments
from tensafe.static.costs.shapes import rank_of
from tensafe.static.forms import Form, Layout, refuses
from tensafe.static.machine import Machine
from tensafe.static.values import Memory


def viewed(m: Machine, target: Memory, given: Arguments, node: ast.Call) -> None:
    """`target.view(...)`: ask where its strides cannot give as few dimensions."""
    form, func = target.form, node.func
    if form is None or not form.layout or given.rest is not None or not isinstance(func, ast.Attribute):
        return
    rank = rank_of(given.positional)
    if rank is None or given.keywords or not _is_refused(form.layout, rank, node.args):
        return
    if around.is_expected(m, node):
        return
    receiver = func.value
    storages = frozenset(map(StorageId, target.storages))
    label = ast.unparse(receiver)
    fact = Fact(storages, _trail(m, form), label if len(label) <= 40 else "")
    operand = Fact(storages, (m.moment(Kind.MADE, "", receiver),))
    m.put(
        Kind.REFUSED, "Tensor.view", node, m.frame, {"target": fact, "operand": operand}, note="view as shape"
    )


def _is_refused(layout: Layout, rank: int, arguments: list[ast.expr]) -> bool:
    """Dimensions that stay as they are, first and last, are put aside: the others must become fewer."""
    if len(arguments) == rank and rank > 1:
        if ast.unparse(arguments[0]).endswith((".size(0)", ".shape[0]")):
            layout, rank, arguments = layout[1:], rank - 1, arguments[1:]
        if rank > 1 and _is_last(layout, arguments[-1]):
            layout, rank = layout[:-1], rank - 1
    return refuses(layout, rank)


def _is_last(layout: Layout, argument: ast.expr) -> bool:
    """Whether the last dimension keeps its size: a number is that of the last one, mostly."""
    size = layout[-1].size if layout else None
    if isinstance(argument, ast.Constant):
        return isinstance(argument.value, int) and size in (None, argument.value)
    return ast.unparse(argument).endswith((".size(-1)", ".shape[-1]"))


def _trail(m: Machine, form: Form) -> tuple[Moment, ...]:
    if form.made is None or form.frame is None:
        return ()
    site = form.frame.source.site(form.made, form.frame.label)
    return (Moment(Kind.VIEWED, _name(form.made), site, m.past.tick()),)


def _name(node: ast.AST) -> str:
    """The call that changed the order, as the rule calls it."""
    if isinstance(node, ast.Subscript):
        return "slice"
    if isinstance(node, ast.Attribute):
        return node.attr
    if not isinstance(node, ast.Call):
        return ""
    if any("channels_last" in ast.unparse(word.value) for word in node.keywords):
        return "channels_last"
    return ast.unparse(node.func).rpartition(".")[2]
