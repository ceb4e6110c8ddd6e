"""Tensors made from other values: rebuilt as copies, or over the memory of an array."""

from __future__ import annotations

import ast

from tensafe.facts import Kind
from tensafe.ops import Dtype
from tensafe.static.arguments import Arguments
from tensafe.static.costs import fresh_copies
from tensafe.static.forms import CONTIGUOUS, Form
from tensafe.static.iteration import view_of
from tensafe.static.machine import Machine
from tensafe.static.operations import cuts_of, tensors_of
from tensafe.static.values import (
    ARRAY,
    LIKELY,
    TENSOR,
    THING,
    YES,
    Constant,
    Cut,
    Library,
    Memory,
    Sequence,
    Value,
)


def typed(m: Machine, given: Arguments, node: ast.Call) -> Value:
    """`torch.Tensor(data)`: a copy of numbers and arrays in its own type, another name of a tensor."""
    data = given.get(0, "data")
    if type(data) is Memory and data.kind == TENSOR:
        return view_of(data)
    return _rebuilt(m, data, given, node)


def tensor(m: Machine, given: Arguments, node: ast.Call) -> Value:
    """`torch.tensor(data)`: a copy without history."""
    data = given.get(0, "data")
    made = _rebuilt(m, data, given, node)
    if type(data) is Memory and node.args:
        fresh_copies.copied(m, "torch.tensor", data, node.args[0], node)
    return made


def _rebuilt(m: Machine, data: Value | None, given: Arguments, node: ast.Call) -> Memory:
    made = m.fresh(TENSOR)
    operands = [data] if data is not None else []
    live = [one for one in tensors_of(operands) if one.grad == YES and not one.leaf and one.kind == TENSOR]
    wants_grad = given.flag("requires_grad") is True
    old = cuts_of(operands)
    made.cuts = old
    if live and m.grad_on:
        made.cuts = (Cut(m.moment(Kind.CUT, "torch.tensor", node), live[0], rebuilt=True), *old)[:4]
    elif old and wants_grad and _is_plain(data):
        cut = next((one for one in old if one.source.grad == YES), None)
        if cut is not None:
            made.cuts = (Cut(m.moment(Kind.CUT, "torch.tensor", node), cut.source, rebuilt=True), *old)[:4]
    made.data = not wants_grad
    made.form = Form(CONTIGUOUS)
    if wants_grad:
        made.grad, made.leaf = YES, True
    _type(made, data, given)
    return made


def _is_plain(data: Value | None) -> bool:
    return data is not None


def _type(made: Memory, data: Value | None, given: Arguments) -> None:
    dtype = given.keywords.get("dtype")
    if type(dtype) is Library:
        made.dtype = dtype_named(dtype.path)
    elif type(data) is Sequence:
        made.dtype = _literal(data)
    made.spread = type(data) is Sequence and bool(data.items or data.rest)


def _literal(data: Sequence) -> Dtype:
    kinds = set()
    for item in data.items:
        if type(item) is Sequence:
            kinds.add(_literal(item))
        elif type(item) is Constant and isinstance(item.value, bool):
            kinds.add(Dtype.BOOL)
        elif type(item) is Constant and isinstance(item.value, int):
            kinds.add(Dtype.INTEGER)
        else:
            kinds.add(Dtype.UNKNOWN)
    return kinds.pop() if len(kinds) == 1 and data.rest is None else Dtype.UNKNOWN


def dtype_named(path: str) -> Dtype:
    """The kind of element that `torch.bool` or `numpy.int64` names."""
    name = path.rpartition(".")[2]
    if name.startswith("bool"):
        return Dtype.BOOL
    if name.startswith(("int", "uint", "long", "short")):
        return Dtype.INTEGER
    return Dtype.FLOAT


def as_tensor(m: Machine, given: Arguments, node: ast.Call) -> Value:
    """`torch.as_tensor(data)`: the same memory when nothing has to change."""
    data = given.get(0, "data")
    if type(data) is not Memory:
        return tensor(m, given, node)
    view = view_of(data)
    view.kind = TENSOR
    view.hidden = False
    if data.kind != TENSOR:
        note = "dtype" if "dtype" in given.keywords else ""
        imported = m.moment(Kind.EXPORTED, "torch.as_tensor", node, note=note)
        m.books.imported.setdefault(data.storages[0], imported)
    view.exact = data.exact and data.kind == ARRAY and "dtype" not in given.keywords
    return view


def from_numpy(m: Machine, given: Arguments, node: ast.Call) -> Value:
    """`torch.from_numpy(array)`: a tensor over the array's memory."""
    data = given.get(0, "ndarray")
    if type(data) is not Memory:
        return m.fresh(TENSOR)
    if data.kind == THING:
        data.kind = ARRAY
    view = view_of(data)
    view.kind, view.hidden, view.base = TENSOR, False, None
    view.grad = data.grad if data.grad < LIKELY else 0
    view.parents = ()
    imported = m.moment(Kind.EXPORTED, "torch.from_numpy", node)
    view.trail = (*data.trail, imported)
    m.books.imported.setdefault(data.storages[0], imported)
    return view
