"""Methods of tensors, arrays and things that may be either."""

from __future__ import annotations

import ast

from tensafe.facts import Kind
from tensafe.ops import OPS, TENSOR_METHODS, WRITERS, Dtype, Op, Saves, out_of_place, words
from tensafe.static import arrays, forms, operations, training
from tensafe.static.aliasing import overlaps
from tensafe.static.arguments import Arguments
from tensafe.static.attributes import cut_here, read
from tensafe.static.calls import dispatch
from tensafe.static.costs import fresh_copies, refused_views, unwritten_copies
from tensafe.static.forms import Form
from tensafe.static.graphs import known, leaks, refused_writes, to_arrays
from tensafe.static.iteration import child, view_of
from tensafe.static.machine import Machine
from tensafe.static.subscripts import load
from tensafe.static.unknowns import unknown
from tensafe.static.values import (
    ARRAY,
    LIKELY,
    NO,
    NOTHING_KNOWN,
    POINTER,
    TENSOR,
    THING,
    Function,
    Memory,
    Scalar,
    Sequence,
    Value,
)

_NUMBERS = words(
    """
    item tolist numel dim size stride nelement get_device element_size is_contiguous
    """
)
_CASTS = {"bool": Dtype.BOOL, "long": Dtype.INTEGER, "int": Dtype.INTEGER, "short": Dtype.INTEGER}
_SPREAD = words("nonzero argwhere argsort topk sort multinomial tolist")


def call(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    """`receiver.name(...)` on something that may be a tensor."""
    if receiver.children is not None and ("attr", name) in receiver.children:
        held = receiver.children["attr", name]
        if type(held) is not Memory:
            return dispatch(m, held, given, node, receiver, name)
    special = _SPECIAL.get(name)
    if special is not None:
        answer = special(m, receiver, name, given, node)
        if answer is not None:
            return answer
    if receiver.label == "distribution":
        return _of_distribution(m, receiver, name, given, node)
    if receiver.kind == ARRAY:
        return arrays.method(m, receiver, name, given, node)
    base = out_of_place(name)
    if base is not None:
        return _in_place(m, base, receiver, given, node)
    if receiver.kind == THING and (name in TENSOR_METHODS or (name in OPS and leaks.is_given(receiver))):
        receiver.kind = TENSOR
    op = OPS.get(name)
    if receiver.kind == TENSOR and op is not None:
        return of_tensor(m, op, receiver, given, node)
    if receiver.kind == THING:
        return _of_thing(m, receiver, name, given, node)
    return unknown(m, given, name, receiver)


def _of_distribution(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    recorded = name in ("log_prob", "entropy", "rsample", "cdf")
    tensors = (receiver, *operations.tensors_of(given.all))
    result = m.fresh(TENSOR, receiver.grad if recorded else NO, tensors if recorded else ())
    result.cuts = operations.cuts_of([receiver, *given.all])
    result.made = known.here(m, name, node)
    return result


def _of_thing(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    op = OPS.get(name)
    if op is not None and name not in ("max", "min"):
        return operations.compute(m, op, [receiver, *given.all], [receiver], node)
    held = read(m, receiver, name, node)
    if type(held) is Function:
        return dispatch(m, held, given, node, receiver, name)
    return unknown(m, given, name, receiver)


def _in_place(m: Machine, op: Op, receiver: Memory, given: Arguments, node: ast.Call) -> Value:
    if receiver.kind == THING:
        if f"{op.name}_" not in WRITERS and op.name not in OPS:
            return unknown(m, given, f"{op.name}_", receiver)
        receiver.kind = TENSOR
    return operations.in_place(m, op, receiver, given.all, node)


def of_tensor(m: Machine, op: Op, receiver: Memory, given: Arguments, node: ast.Call) -> Value:
    """A method that is one of the known operations."""
    name = op.name
    if name in _CASTS:
        cast = operations.compute(m, Op(name, differentiable=False), [receiver], [receiver], node)
        cast.dtype, cast.spread = _CASTS[name], receiver.spread
        return cast
    if name in ("max", "min"):
        return extreme(m, name, receiver, given, node)
    operands = [receiver, *given.all]
    result = operations.compute(m, op, operands, operations.tensors_of(operands), node)
    if name in overlaps.FOLDING:
        overlaps.folded(m, name, result, given, node)
    return finish(m, name, result, receiver)


def finish(m: Machine, name: str, result: Memory, source: Memory) -> Value:
    """What several results, and results of a special kind, look like."""
    if name in ("split", "chunk", "unbind", "tensor_split"):
        return Sequence([], result, "tuple")
    if name in ("topk", "sort"):
        indices = Memory(TENSOR, (m.past.storage(),), NO)
        indices.dtype, indices.spread = Dtype.INTEGER, True
        return Sequence([result, indices], None, "pair")
    if name in _SPREAD:
        result.spread = True
    return result


def extreme(m: Machine, name: str, receiver: Memory, given: Arguments, node: ast.AST) -> Value:
    """`max()` keeps input and output, `max(dim)` the indices alone."""
    op = OPS[name]
    if not given.all:
        op = Op(name, saves=Saves.BOTH)
    operands: list[Value] = [receiver, *[value for value in given.all if type(value) is Memory]]
    if len(operands) > 1:
        op = Op(name, saves=Saves.INPUTS)
    result = operations.compute(m, op, operands, operations.tensors_of(operands), node)
    if not given.all or len(operands) > 1:
        return result
    indices = Memory(TENSOR, (m.past.storage(),), NO)
    indices.dtype = Dtype.INTEGER
    return Sequence([result, indices], None, "pair")


def _detach(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    receiver.kind = TENSOR if receiver.kind == THING else receiver.kind
    view = view_of(receiver)
    view.base = None
    view.form = receiver.form
    view.grad, view.parents = NO, ()
    view.trail = refused_writes.without_marks(view.trail)
    view.leaf = receiver.leaf and receiver.owner is not None
    view.cuts = cut_here(m, receiver, "Tensor.detach", node)
    return view


def _detach_in_place(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    if receiver.leaf:
        known.freeze(m, receiver)
    receiver.grad, receiver.parents, receiver.leaf = NO, (), True
    return receiver


def _item(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    if name == "size" or receiver.grad < LIKELY:
        return Scalar(receiver.cuts)
    return Scalar(cut_here(m, receiver, f"Tensor.{name}", node))


def _number(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    return Scalar()


def _numpy(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    to_arrays.converted(m, receiver, node, given)
    moment = m.moment(Kind.EXPORTED, "Tensor.numpy", node)
    array = view_of(receiver)
    array.kind, array.grad, array.parents, array.hidden, array.base = ARRAY, NO, (), True, None
    array.cuts = cut_here(m, receiver, "Tensor.numpy", node)
    array.trail = (*receiver.trail, moment)
    return array


def _pointer(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    pointer = view_of(receiver)
    pointer.kind, pointer.grad, pointer.hidden, pointer.parents = POINTER, NO, True, ()
    pointer.trail = (*receiver.trail, m.moment(Kind.EXPORTED, "Tensor.data_ptr", node))
    return pointer


def _storage(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    view = view_of(receiver)
    view.hidden = True
    return view


def _backward(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    training.backward(m, receiver, given, node)
    return NOTHING_KNOWN


def _requires_grad(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    receiver.kind = TENSOR if receiver.kind == THING else receiver.kind
    known.set_requires_grad(m, receiver, not given.all or given.flag("requires_grad", 0) is True, node)
    return receiver


def _clone(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    copied = m.fresh(receiver.kind, receiver.grad, (receiver,))
    copied.dtype, copied.cuts, copied.spread = receiver.dtype, receiver.cuts, receiver.spread
    copied.data = receiver.data
    if receiver.form is not None and receiver.form.layout is not None:
        copied.form = Form(forms.copied(receiver.form.layout), None, receiver.form.made, receiver.form.frame)
    if isinstance(node.func, ast.Attribute):
        fresh_copies.copied(m, "Tensor.clone", receiver, node.func.value, node)
        unwritten_copies.copied(m, receiver, copied, node)
    return copied


def _view(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value | None:
    if receiver.form is not None:
        refused_views.viewed(m, receiver, given, node)
    return None


def _to(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value | None:
    """`.to(device)` of something that may be a module gives the module itself."""
    if receiver.kind != THING:
        return None
    if name in ("train", "eval", "requires_grad_"):
        return receiver
    moved = view_of(receiver)
    moved.moved = True
    moved.owner = receiver
    return moved


def _parameters(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value | None:
    return training.of_module(m, receiver, name, given, node) if receiver.kind == THING else None


def _step(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value | None:
    training.unknown_step(m, receiver, node)
    return None


def _get(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value | None:
    if receiver.kind != THING or not given.positional:
        return None
    return load(m, receiver, given.positional[0], None)


def _items(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value | None:
    if receiver.kind != THING:
        return None
    value = child(m, receiver, ("item", "any"))
    return Sequence([], Sequence([NOTHING_KNOWN, value], None, "tuple") if name == "items" else value)


def _masked(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value | None:
    """Methods that gather a copy by index."""
    if receiver.kind == ARRAY:
        return None
    receiver.kind = TENSOR
    result = operations.compute(m, OPS[name], [receiver, *given.all], [receiver], node)
    result.trail = (m.moment(Kind.COPIED, f"`{name}`", node),)
    return result


_SPECIAL = {
    "detach": _detach,
    "detach_": _detach_in_place,
    "item": _item,
    "tolist": _item,
    "size": _item,
    **dict.fromkeys(_NUMBERS - {"item", "tolist", "size"}, _number),
    "numpy": _numpy,
    "__array__": _numpy,
    "data_ptr": _pointer,
    "untyped_storage": _storage,
    "storage": _storage,
    "backward": _backward,
    "requires_grad_": _requires_grad,
    "clone": _clone,
    "view": _view,
    **dict.fromkeys(("to", "cuda", "cpu", "train", "eval", "half", "float", "double"), _to),
    **dict.fromkeys(("parameters", "named_parameters", "state_dict", "load_state_dict"), _parameters),
    "step": _step,
    "get": _get,
    "items": _items,
    "values": _items,
    **dict.fromkeys(("index_select", "masked_select", "gather"), _masked),
}
