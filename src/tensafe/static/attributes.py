"""Attributes: of objects, tensors, modules and libraries."""

from __future__ import annotations

import ast

from tensafe.facts import Kind
from tensafe.ops import words
from tensafe.static import definitions
from tensafe.static.costs.shapes import transposed
from tensafe.static.graphs.known import always_trains, is_frozen
from tensafe.static.hazards import memories
from tensafe.static.invocation import invoke
from tensafe.static.iteration import child, view_of
from tensafe.static.joins import join_all
from tensafe.static.machine import Machine
from tensafe.static.values import (
    LIKELY,
    NO,
    NOTHING_KNOWN,
    TENSOR,
    THING,
    UNKNOWN,
    YES,
    Choice,
    Class,
    Constant,
    Cut,
    Function,
    Instance,
    Layer,
    Library,
    Mapping,
    Memory,
    Method,
    Optimizer,
    Sequence,
    State,
    Value,
)

_VIEWS = words("T mT H mH real imag")
_PLAIN = words(
    """
    shape dtype device ndim size is_leaf requires_grad grad_fn is_cuda layout itemsize nbytes names
    flags
    """
)


def attribute(m: Machine, node: ast.Attribute) -> Value:
    owner = m.eval(node.value)
    value = read(m, owner, node.attr, node)
    if m.touched is not None:
        for memory in memories(value):
            m.touched(node, memory)
    return value


def read(m: Machine, owner: Value, name: str, node: ast.AST) -> Value:
    """`owner.name`."""
    kind = type(owner)
    if kind is Library:
        assert isinstance(owner, Library)
        return Library(f"{owner.path}.{name}", owner.origin, owner.level)
    if kind is Instance:
        assert isinstance(owner, Instance)
        return of_instance(m, owner, name)
    if kind is Memory:
        assert isinstance(owner, Memory)
        return of_memory(m, owner, name, node)
    if kind is Layer:
        assert isinstance(owner, Layer)
        return of_layer(m, owner, name)
    if kind is Choice:
        assert isinstance(owner, Choice)
        return join_all([read(m, option, name, node) for option in owner.options])
    if kind is Class:
        assert isinstance(owner, Class)
        return _of_class(owner, name)
    if type(owner) is Sequence and owner.kind == "pair" and name in ("values", "indices"):
        return owner.items[0 if name == "values" else 1]
    if kind is Sequence or kind is Mapping or kind is State or kind is Optimizer:
        return Method(owner, name)
    return NOTHING_KNOWN


def _of_class(owner: Class, name: str) -> Value:
    found = definitions.find_method(owner, name)
    if found:
        return Function(found[1], found[0].source, (found[0].scope,), None, found[0])
    return owner.attributes.get(name) or Method(owner, name)


def of_instance(m: Machine, owner: Instance, name: str) -> Value:
    if name in owner.attributes:
        return owner.attributes[name]
    found = definitions.find_method(owner.cls, name)
    if found:
        cls, node = found
        method = Function(node, cls.source, (cls.scope,), owner, cls)
        if any(_is_property(decorator) for decorator in node.decorator_list):
            return invoke(m, method, [], {}, node)
        return method
    for cls in (owner.cls, *(base for base in owner.cls.bases if type(base) is Class)):
        if name in cls.attributes:
            return cls.attributes[name]
    return _missing(m, owner, name)


def _is_property(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("property", "cached_property")


_MODULE_METHODS = words(
    """
    parameters named_parameters state_dict load_state_dict to cuda cpu train eval modules children
    named_modules named_children zero_grad requires_grad_ apply register_buffer register_parameter
    add_module half float double buffers named_buffers share_memory compile bfloat16
    """
)


def _missing(m: Machine, owner: Instance, name: str) -> Value:
    """An attribute that nobody in sight assigns."""
    base = definitions.library_base(owner.cls)
    if owner.cls.kind == "context" and name.startswith(("save_", "mark_", "set_")):
        return Method(owner, name)
    if owner.cls.kind == "module" and name in _MODULE_METHODS:
        return Method(owner, name)
    if owner.cls.kind == "module" and name == "training" and always_trains(m):
        return Constant(True)
    if owner.cls.kind == "module" and base.startswith("torch.nn.") and name in ("weight", "bias"):
        value: Value = parameter(m, owner.storage, owner)
    else:
        thing = m.thing(name, UNKNOWN)
        thing.owner = owner
        if owner.cls.kind == "module":
            m.past.put_inside(thing.storages[0], owner.storage)
        value = thing
    owner.attributes[name] = value
    return value


def parameter(m: Machine, storage: int, owner: Value) -> Memory:
    """A parameter inside a module's memory."""
    memory = Memory(TENSOR, (m.past.storage(),), NO if is_frozen(m, storage) else YES)
    memory.leaf = True
    memory.owner = owner
    m.past.put_inside(memory.storages[0], storage)
    return memory


def of_layer(m: Machine, owner: Layer, name: str) -> Value:
    if name in owner.attributes:
        return owner.attributes[name]
    if name in ("weight", "bias") or name.startswith(("weight_", "bias_")):
        owner.attributes[name] = parameter(m, owner.storage, owner)
        return owner.attributes[name]
    if name == "running_mean" or name == "running_var":
        owner.attributes[name] = m.fresh(TENSOR)
        return owner.attributes[name]
    return Method(owner, name)


def of_memory(m: Machine, owner: Memory, name: str, node: ast.AST) -> Value:
    if owner.children is not None and ("attr", name) in owner.children:
        return owner.children["attr", name]
    if name == "data":
        return data_of(m, owner, node)
    if owner.kind == THING:
        return child(m, owner, ("attr", name))
    if name in _VIEWS:
        view = view_of(owner)
        if owner.form is not None and "T" in name:
            view.form = transposed(m, owner, node, matrix=name == "mT")
        return view
    if name in _PLAIN:
        return NOTHING_KNOWN
    if name == "grad":
        owner.children = owner.children if owner.children is not None else {}
        return owner.children.setdefault(("attr", "grad"), m.fresh(TENSOR))
    return Method(owner, name)


def data_of(m: Machine, owner: Memory, node: ast.AST) -> Memory:
    """`.data`: the same memory, no graph, and a version counter of its own."""
    view = view_of(owner)
    view.grad, view.hidden, view.parents = NO, True, ()
    view.base = None
    view.leaf = owner.leaf and owner.owner is not None
    view.cuts = cut_here(m, owner, "Tensor.data", node)
    return view


def cut_here(m: Machine, source: Memory, op: str, node: ast.AST, rebuilt: bool = False) -> tuple[Cut, ...]:
    """The cuts of a value that `op` takes out of its graph."""
    if source.grad < LIKELY or source.leaf or not m.grad_on:
        return source.cuts
    return (Cut(m.moment(Kind.CUT, op, node), source, rebuilt), *source.cuts)[:4]
