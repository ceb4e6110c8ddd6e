"""Copies of a tensor that stays as it is, such as those that look like views, in every round or call."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tensafe.facts import Kind, StorageId
from tensafe.facts import Value as Fact
from tensafe.static import around, forms
from tensafe.static.machine import Machine
from tensafe.static.values import Frame, Memory


@dataclass(frozen=True, slots=True)
class Repeated:
    """A copy that is made again and again: of what, where, and since when nobody may write."""

    source: Memory
    result: Memory
    node: ast.Call
    frame: Frame
    order: int


def copied(m: Machine, name: str, source: Memory, result: Memory, node: ast.AST) -> None:
    """`name` gave a view or a copy: remember where it is the same copy each time."""
    form = source.form
    if form is None or not form.layout or form.made is None or form.frame is None or form.part is not None:
        return
    if forms.is_contiguous(form.layout) or not isinstance(node, ast.Call):
        return
    if (name != "contiguous" and len(node.args) > 1) or source.grad != 0 or not _is_repeated(m, form, node):
        return
    m.repeated.append(Repeated(source, result, node, m.frame, m.past.order))


def _is_repeated(m: Machine, form: forms.Form, node: ast.AST) -> bool:
    """Whether the order was changed once, and the copy is made in a loop or in another method."""
    assert form.frame is not None
    assert form.made is not None
    if form.frame.label.endswith("__init__") and form.frame.label != m.frame.label:
        return True
    if form.frame.source is not m.frame.source:
        return False
    loop = around.loop_around(m.frame.source, node)
    if loop is None or around.is_in(form.made, loop, m.frame.source):
        return False
    source = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    return source is None or not around.mentions(source, around.bound_in(loop))


def finish(m: Machine) -> None:
    """Ask about the copies of what nobody wrote."""
    written = {
        one.node
        for one in m.repeated
        if _is_written(m, one.source, one.order) or _is_written(m, one.result, one.order)
    }
    for one in m.repeated:
        if one.node not in written:
            moment = m.moment(Kind.COPIED, f"Tensor.{_name(one.node)}", one.node)
            site = one.frame.source.site(one.node, one.frame.label)
            moment = type(moment)(Kind.COPIED, moment.op, site, moment.order)
            fact = Fact(frozenset(map(StorageId, one.source.storages)), (moment,))
            m.put(Kind.COPIED, moment.op, one.node, one.frame, {"copy": fact})
    m.repeated.clear()


def _is_written(m: Machine, memory: Memory, order: int) -> bool:
    return any(
        write.moment.order > order for storage in memory.storages for write in m.past.writes.get(storage, ())
    )


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""
