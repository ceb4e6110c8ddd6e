"""Storing a value: into names, attributes, subscripts, and in place."""

from __future__ import annotations

import ast

from tensafe.facts import Kind
from tensafe.static import operations, snapshots, twins
from tensafe.static.aliasing import histories, looks, repeats, ties, workers
from tensafe.static.costs import kept_parts
from tensafe.static.discards import lost_store
from tensafe.static.graphs import finished, keeping, known
from tensafe.static.indexing import is_advanced, key_of_index
from tensafe.static.iteration import item_at, items_of, view_of
from tensafe.static.joins import join
from tensafe.static.machine import Machine
from tensafe.static.subscripts import load
from tensafe.static.values import (
    ARRAY,
    NOTHING_KNOWN,
    POINTER,
    TENSOR,
    THING,
    YES,
    Choice,
    Constant,
    Instance,
    Layer,
    Mapping,
    Memory,
    Scalar,
    Sequence,
    State,
    Value,
)


def store(m: Machine, target: ast.expr, value: Value, statement: ast.stmt) -> None:
    """`target = value`."""
    kind = type(target)
    if kind is ast.Name:
        assert isinstance(target, ast.Name)
        value = snapshots.bound(m, value, statement)
        if m.finished.ended:
            finished.stored(m, m.frame.scope.get(target.id), value, target, statement)
        m.bind(m.frame.scope, target.id, value)
        if type(value) is Memory and value.kind == ARRAY and value.trail:
            histories.bound(m, target.id, value, statement)
        twins.bound_name(m, target, value, statement)
    elif kind is ast.Tuple or kind is ast.List:
        assert isinstance(target, ast.Tuple | ast.List)
        _unpack(m, target.elts, value, statement)
    elif kind is ast.Attribute:
        assert isinstance(target, ast.Attribute)
        store_attribute(m, target, value, statement)
    elif kind is ast.Subscript:
        assert isinstance(target, ast.Subscript)
        store_item(m, target, value, statement)
    elif kind is ast.Starred:
        assert isinstance(target, ast.Starred)
        store(m, target.value, value, statement)


def _unpack(m: Machine, targets: list[ast.expr], value: Value, statement: ast.stmt) -> None:
    for target, part in zip(targets, parts(m, value, targets), strict=True):
        store(m, target, part, statement)


def parts(m: Machine, value: Value, targets: list[ast.expr]) -> list[Value]:
    """What each target of an unpacking gets."""
    items = items_of(m, value)
    starred = [i for i, target in enumerate(targets) if isinstance(target, ast.Starred)]
    if items is not None and not starred and len(items) == len(targets):
        return items
    if items is not None and starred and len(items) >= len(targets) - 1:
        before, after = starred[0], len(targets) - starred[0] - 1
        end = len(items) - after
        return [*items[:before], Sequence(items[before:end]), *items[end:]]
    return [part_at(m, value, place) for place in range(len(targets))]


def part_at(m: Machine, value: Value, place: int) -> Value:
    """One item of something whose items are not written out."""
    if type(value) is Memory and value.kind in (TENSOR, ARRAY):
        return item_at(m, value, place)
    if type(value) is Memory or type(value) is Sequence or type(value) is Choice:
        return load(m, value, Constant(place), None)
    return NOTHING_KNOWN


def store_attribute(m: Machine, target: ast.Attribute, value: Value, statement: ast.stmt) -> None:
    """`owner.name = value`."""
    owner, name = m.eval(target.value), target.attr
    for one in owner.options if type(owner) is Choice else (owner,):
        _store_in(m, one, name, value, target, statement)


def _store_in(
    m: Machine, owner: Value, name: str, value: Value, target: ast.Attribute, statement: ast.stmt
) -> None:
    if m.books.optimizers:
        ties.module_stored(m, owner, _held(owner, name), value, target)
    if type(owner) is Instance:
        if m.books.in_workers:
            workers.attribute_set(m, owner, name, value, target)
        ties.table_stored(m, owner, value, statement)
        _adopt(m, owner, value)
        keeping.kept_on(m, value, statement)
        if m.finished.ended:
            finished.stored(m, owner.attributes.get(name), value, target, statement)
            finished.chained(m, owner.attributes.get(name), value, statement, ast.unparse(target))
        m.bind(owner.attributes, name, value)
        twins.bound_attribute(m, owner, target, value, statement)
    elif type(owner) is Layer:
        if name == "inplace" and owner.op is not None:
            owner.inplace = type(value) is Constant and bool(value.value)
        else:
            keeping.kept_on(m, value, statement)
            ties.weight_tied(m, value, statement)
            m.bind(owner.attributes, name, value)
    elif type(owner) is Memory:
        _store_in_memory(m, owner, name, value)


def _held(owner: Value, name: str) -> Value | None:
    return owner.attributes.get(name) if isinstance(owner, Instance | Layer) else None


def _store_in_memory(m: Machine, owner: Memory, name: str, value: Value) -> None:
    if name == "requires_grad":
        known.set_requires_grad(m, owner, type(value) is Constant and value.value is True)
    elif name == "data":
        if m.statement is not None:
            ties.data_tied(m, owner, value, m.statement)
        owner.storages = value.storages if type(value) is Memory else (m.past.storage(),)
        owner.exact = owner.exact and (type(value) is not Memory or value.exact)
    elif owner.kind == THING or name != "grad":
        if owner.children is None:
            owner.children = {}
        m.bind(owner.children, ("attr", name), value)


def _adopt(m: Machine, owner: Instance, value: Value) -> None:
    """A parameter or layer that becomes part of a module lies in the module's memory."""
    if owner.cls.kind != "module":
        return
    if type(value) is Memory and value.leaf and value.grad == YES:
        m.past.put_inside(value.storages[0], owner.storage)
        value.owner = value.owner or owner
    elif type(value) is Layer or (type(value) is Instance and value.cls.kind == "module"):
        m.past.put_inside(value.storage, owner.storage)
    elif type(value) is Choice:
        for option in value.options:
            _adopt(m, owner, option)


def store_item(m: Machine, target: ast.Subscript, value: Value, statement: ast.stmt) -> None:
    """`owner[index] = value`."""
    owner, index = m.eval(target.value), m.eval(target.slice)
    for one in owner.options if type(owner) is Choice else (owner,):
        put_item(m, one, index, value, target)
    discarded(m, target)


def discarded(m: Machine, target: ast.Subscript) -> None:
    """A store into the copy that another index has made is lost."""
    lost_store(m, target)


def put_item(m: Machine, owner: Value, index: Value, value: Value, target: ast.expr) -> None:
    """The store itself, for one owner."""
    if type(owner) is not Memory or owner.kind == THING:
        value = _put_part(m, value, target)
    if type(owner) is Memory and owner.kind in (TENSOR, ARRAY, POINTER):
        added = (value,) if type(value) is Memory else ()
        operations.write(
            m, owner, f"{'Tensor' if owner.kind == TENSOR else 'ndarray'}.__setitem__", target, added
        )
    elif type(owner) is Memory:
        if _is_masked_by_itself(target):
            looks.written(m, owner, "Tensor.__setitem__", target, m.moment(Kind.WRITTEN, "", target))
        if not is_advanced(index):
            children = owner.children = owner.children if owner.children is not None else {}
            children["item", key_of_index(index)] = value
    elif type(owner) is Mapping:
        key = index.value if type(index) is Constant else None
        if type(index) is Constant and isinstance(key, str | int | bool | float):
            m.bind(owner.items, key, value)
        else:
            owner.rest = value if owner.rest is None else join(owner.rest, value)
    elif type(owner) is Sequence:
        if m.books.repeats and type(index) is not Constant:
            repeats.slot_stored(m, owner, value)
        _put_in_sequence(owner, index, value)
    elif type(owner) is Layer:
        ties.module_stored(m, owner, None, value, target)
    elif type(owner) is State:
        owner.trail = ()  # its entries are replaced: no longer the live ones alone


def _put_part(m: Machine, value: Value, target: ast.expr) -> Value:
    """What stands in a container for a part of a tensor."""
    if type(value) is Memory and value.form is not None and isinstance(target, ast.Subscript):
        return kept_parts.put(m, target.value, value, target)
    return value


def _is_masked_by_itself(target: ast.expr) -> bool:
    """`x[x == 0] = 1`: only a tensor, or an array, can be written like that."""
    return (
        isinstance(target, ast.Subscript)
        and isinstance(target.slice, ast.Compare)
        and isinstance(target.value, ast.Name)
        and any(isinstance(part, ast.Name) and part.id == target.value.id for part in ast.walk(target.slice))
    )


def _put_in_sequence(owner: Sequence, index: Value, value: Value) -> None:
    place = index.value if type(index) is Constant else None
    if isinstance(place, int) and -len(owner.items) <= place < len(owner.items):
        owner.items[place] = value
    elif owner.rest is not None:
        owner.rest = join(owner.rest, value)


def augment(m: Machine, node: ast.AugAssign) -> None:
    """`target op= value`: in place for tensors and arrays, a new binding for everything else."""
    target = node.target
    if isinstance(target, ast.Subscript):
        _augment_item(m, target, node)
        return
    old = m.eval(target)
    value = m.eval(node.value)
    if isinstance(target, ast.Attribute) and m.grad_on and isinstance(node.op, ast.Add):
        finished.added_on_self(m, target, value, node)
    if type(old) is Memory and old.kind in (TENSOR, ARRAY) and not old.maybe_number:
        operations.in_place_operator(m, old, node, value)
        if m.finished.ended:
            finished.stored(m, old, old, target, node)
        return
    if type(old) is Sequence:
        _extend(old, value)
        return
    if type(old) is State:
        old.trail = ()
        return
    store(m, target, _rebound(m, old, value, node), node)


def _rebound(m: Machine, old: Value, value: Value, node: ast.AugAssign) -> Value:
    """What the name stands for after `op=` on something that may be a number."""
    if type(old) is Memory and old.kind == THING:
        view = view_of(old)
        view.exact = False
        view.parents = (old, value) if type(value) is Memory else (old,)
        view.grad = max(old.grad, value.grad) if type(value) is Memory else old.grad
        return view
    return operations.operator(m, node.op, old, value, node)


def _extend(old: Sequence, value: Value) -> None:
    if type(value) is Sequence:
        old.items += value.items
        old.rest = old.rest or value.rest
    else:
        old.rest = old.rest or NOTHING_KNOWN


def _augment_item(m: Machine, target: ast.Subscript, node: ast.AugAssign) -> None:
    owner, index, value = m.eval(target.value), m.eval(target.slice), m.eval(node.value)
    added = (value,) if type(value) is Memory else ()
    for one in owner.options if type(owner) is Choice else (owner,):
        if type(one) is Memory and one.kind in (TENSOR, ARRAY, POINTER):
            operations.write(
                m, one, f"{'Tensor' if one.kind == TENSOR else 'ndarray'}.__setitem__", node, added
            )
        elif type(one) is Mapping or type(one) is Sequence or type(one) is State or type(one) is Memory:
            _augment_part(m, one, index, value, node)
    discarded(m, target)


def _augment_part(m: Machine, owner: Value, index: Value, value: Value, node: ast.AugAssign) -> None:
    part = load(m, owner, index, None)
    if (
        type(part) is Memory
        and part.kind in (TENSOR, ARRAY)
        and not (part.maybe_number or is_advanced(index))
    ):
        operations.in_place_operator(m, part, node, value)
    elif isinstance(node.target, ast.Subscript) and type(part) is not Scalar:
        put_item(m, owner, index, operations.operator(m, node.op, part, value, node), node.target)
