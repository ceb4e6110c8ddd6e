"""Operations on tensors and arrays: what the result shares, what autograd keeps, what is written."""

from __future__ import annotations

import ast

from tensafe.facts import Moment
from tensafe.ops import OPS, OUTPUT_KEPT_IN_PLACE, Dtype, Gives, Op, Saves, words
from tensafe.static import snapshots
from tensafe.static.aliasing import looks, repeats
from tensafe.static.costs import repeated_copies, shapes
from tensafe.static.graphs import refused_writes
from tensafe.static.iteration import view_of
from tensafe.static.machine import Machine
from tensafe.static.values import (
    ARRAY,
    LIKELY,
    NO,
    NOTHING_KNOWN,
    TENSOR,
    THING,
    YES,
    Choice,
    Constant,
    Cut,
    Memory,
    Scalar,
    Sequence,
    Value,
)

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.Mod: "remainder",
    ast.FloorDiv: "floor_divide",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}
_KEEPS_DIMENSIONS = words(
    """
    add sub rsub mul multiply div divide neg abs remainder floor_divide fmod sign clamp clip clamp_min
    clamp_max bitwise_and bitwise_or bitwise_xor bitwise_not logical_and logical_or logical_not
    logical_xor shift maximum minimum where masked_fill flip roll cat concat concatenate stack repeat
    tile sort argsort cumsum long int
    eq ne lt le gt ge isin bool nonzero argwhere topk
    """
)
_SEVERAL = words("split chunk unbind tensor_split split_with_sizes hsplit vsplit dsplit")
_NAMES = {
    "exp": "ExpBackward0",
    "linear": "AddmmBackward0",
}


def grad_name(op: str) -> str:
    """How autograd's node for an operation is called: `log_softmax` is `LogSoftmaxBackward0`."""
    return _NAMES.get(op) or "".join(part.capitalize() for part in op.strip("_").split("_")) + "Backward0"


def operator(m: Machine, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value:
    """`left op right`."""
    if isinstance(op, ast.Mult) and (type(left) is Sequence or type(right) is Sequence):
        made = _sequences(op, left, right)
        repeats.multiplied(m, made, right if type(left) is Sequence else left, node)
        return made
    if type(left) is Choice or type(right) is Choice:
        left = left.options[0] if type(left) is Choice else left
        right = right.options[0] if type(right) is Choice else right
    if type(left) is Memory or type(right) is Memory:
        if isinstance(op, ast.Sub):
            snapshots.compared(m, left, right, node)
        return elementwise(m, _OPERATORS.get(type(op), "shift"), [left, right], node)
    if type(left) is Constant and type(right) is Constant:
        return NOTHING_KNOWN
    if type(left) is Sequence or type(right) is Sequence:
        return _sequences(op, left, right)
    cuts = tuple(cut for value in (left, right) if type(value) is Scalar for cut in value.cuts)
    return Scalar(cuts) if cuts else NOTHING_KNOWN


def _sequences(op: ast.operator, left: Value, right: Value) -> Value:
    if type(left) is Sequence and type(right) is Sequence and isinstance(op, ast.Add):
        return Sequence([*left.items, *right.items], left.rest or right.rest, left.kind)
    owner = left if type(left) is Sequence else right
    if type(owner) is Sequence and isinstance(op, ast.Mult) and (owner.items or owner.rest):
        return Sequence(owner.items[:], owner.rest or owner.items[-1], owner.kind)
    return NOTHING_KNOWN


def comparison(m: Machine, operands: list[Value], node: ast.AST) -> Value:
    """A mask, when one side is known to be a tensor or an array."""
    kinds = {value.kind for value in operands if type(value) is Memory}
    if not kinds & {TENSOR, ARRAY}:
        return NOTHING_KNOWN
    mask = m.fresh(TENSOR if TENSOR in kinds else ARRAY)
    mask.dtype = Dtype.BOOL
    mask.spread = any(type(value) is Memory and value.spread for value in operands)
    return mask


def tensors_of(operands: list[Value], depth: int = 4) -> list[Memory]:
    """The tensors among the operands, those in lists too."""
    if depth == 0:
        return []
    found: list[Memory] = []
    for value in operands:
        if type(value) is Memory:
            found.append(value)
        elif type(value) is Sequence:
            found += tensors_of(value.items, depth - 1)
            found += tensors_of([value.rest], depth - 1) if value.rest else []
        elif type(value) is Choice:
            found += tensors_of(list(value.options), depth - 1)
    return found


def cuts_of(operands: list[Value], depth: int = 4) -> tuple[Cut, ...]:
    """Where the operands left their graphs."""
    cuts: dict[Cut, None] = {}
    if depth == 0:
        return ()
    for value in operands:
        if type(value) is Memory or type(value) is Scalar:
            cuts.update(dict.fromkeys(value.cuts))
        elif type(value) is Sequence:
            cuts.update(
                dict.fromkeys(cuts_of([*value.items, *([value.rest] if value.rest else [])], depth - 1))
            )
    return tuple(cuts)[:4]


def elementwise(m: Machine, name: str, operands: list[Value], node: ast.AST) -> Value:
    """An operation by name, whatever the operands are."""
    tensors = tensors_of(operands)
    if not tensors:
        cuts = cuts_of(operands)
        return Scalar(cuts) if cuts else NOTHING_KNOWN
    op = OPS.get(name) or Op(name)
    return compute(m, op, operands, tensors, node)


def kind_of(tensors: list[Memory]) -> str:
    kinds = {tensor.kind for tensor in tensors}
    if TENSOR in kinds:
        return TENSOR
    return ARRAY if ARRAY in kinds and THING not in kinds else THING


def compute(m: Machine, op: Op, operands: list[Value], tensors: list[Memory], node: ast.AST) -> Memory:
    """The result of an operation, and what it keeps of its tensors."""
    if op.gives is not Gives.FRESH and type(operands[0]) is Memory:
        view = _shared(m, op, operands[0], node)
        view.form = shapes.of_view(m, op.name, operands, node)
        if op.gives is Gives.EITHER and operands[0].form is not None:
            repeated_copies.copied(m, op.name, operands[0], view, node)
        return view
    grad = max(tensor.grad for tensor in tensors) if op.differentiable else NO
    result = m.fresh(kind_of(tensors), grad, tuple(tensors) if op.differentiable else ())
    result.dtype = op.dtype if op.dtype is not Dtype.UNKNOWN else _dtype(tensors)
    result.cuts = cuts_of(operands)
    result.spread = op.name in _KEEPS_DIMENSIONS and any(tensor.spread for tensor in tensors)
    result.data = all(tensor.data and tensor.grad == NO for tensor in tensors)
    result.made = (op.name, node, m.frame.source, m.frame.label)
    result.form = shapes.of_result(m, op.name, operands, tensors)
    if result.dtype in (Dtype.BOOL, Dtype.INTEGER):
        result.grad = NO
    if op.saves is not Saves.NOTHING and result.grad >= LIKELY and result.kind == TENSOR:
        m.hazards.save(grad_name(op.name), node, result, *kept(op, operands, tensors, result))
    return result


def _dtype(tensors: list[Memory]) -> Dtype:
    dtypes = {tensor.dtype for tensor in tensors}
    return dtypes.pop() if len(dtypes) == 1 else Dtype.UNKNOWN


def _shared(m: Machine, op: Op, source: Memory, node: ast.AST) -> Memory:
    view = view_of(source)
    view.spread = False
    if op.gives is Gives.EITHER:
        view.exact = False
        view.storages = (*source.storages, m.past.storage())
    if not m.grad_on and op.gives is not Gives.EITHER:
        refused_writes.viewed(m, view, source, node)
    if not op.differentiable or not m.grad_on:
        view.grad = NO
    elif view.grad == YES and op.name in _SEVERAL:
        refused_writes.mark(m, view, node, refused_writes.SEVERAL, op.name)
    return view


def kept(op: Op, operands: list[Value], tensors: list[Memory], result: Memory) -> list[Memory]:
    """The tensors that autograd keeps for this operation."""
    saves = op.saves
    if saves is Saves.FACTORS:
        return [tensor for tensor in tensors if _has_live_fellow(tensor, tensors)]
    if saves is Saves.DIVISOR:
        divisor = [operands[1]] if len(operands) > 1 and type(operands[1]) is Memory else []
        live = bool(divisor) and divisor[0].grad >= LIKELY
        dividend = [operands[0]] if live and type(operands[0]) is Memory else []
        return [one for one in (*divisor, *dividend) if one.kind == TENSOR]
    if saves is Saves.POWER:
        if len(operands) > 1 and type(operands[1]) is Memory:
            return [*tensors, result] if all(tensor.kind == TENSOR for tensor in tensors) else []
        return tensors[:1]
    if saves is Saves.SECOND:
        return tensors[1:2]
    if saves is Saves.INPUT:
        return tensors[:1]
    if saves is Saves.INPUTS:
        return tensors
    return [*tensors[:1], result] if saves is Saves.BOTH else [result]


def _has_live_fellow(tensor: Memory, tensors: list[Memory]) -> bool:
    return tensor.kind == TENSOR and any(
        fellow.grad >= LIKELY
        and fellow.kind == TENSOR
        and (fellow is not tensor or tensors.count(tensor) > 1)
        for fellow in tensors
    )


def write(m: Machine, target: Memory, op: str, node: ast.AST, added: tuple[Value, ...] = ()) -> Moment:
    """A write through `target`; the history of what is written joins its own."""
    tensors = tuple(value for value in added if type(value) is Memory and value is not target)
    if m.unseen_write is not None and (target.kind != TENSOR or _writes_out(node)):
        m.unseen_write(node, m.frame, target)
    moment = m.hazards.write(target, op, node, tensors)
    looks.written(m, target, op, node, moment)
    return moment


def _writes_out(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and any(keyword.arg == "out" for keyword in node.keywords)


def in_place_operator(m: Machine, target: Memory, node: ast.AugAssign, value: Value) -> None:
    """`target op= value` on a tensor or array."""
    name = _OPERATORS.get(type(node.op), "shift")
    if isinstance(node.op, ast.Sub):
        snapshots.compared(m, target, value, node)
    in_place(m, OPS.get(name) or Op(name), target, [value], node)


def in_place(m: Machine, op: Op, target: Memory, arguments: list[Value], node: ast.AST) -> Memory:
    """An in-place operation: autograd keeps a clone of what it overwrites, and the arguments as they are."""
    others = tensors_of(arguments)
    owner = "Tensor" if target.kind != ARRAY else "ndarray"
    live = target.grad >= LIKELY or any(other.grad >= LIKELY for other in others)
    write(
        m, target, f"{owner}.{op.name}_" if owner == "Tensor" else f"{owner}.{op.name}", node, tuple(others)
    )
    if live and target.kind == TENSOR and not target.hidden:
        keeps = [
            one for one in kept(op, [target, *arguments], [target, *others], target) if one is not target
        ]
        if op.saves in (Saves.OUTPUT, Saves.BOTH) or op.name in OUTPUT_KEPT_IN_PLACE:
            keeps.append(target)
        m.hazards.save(grad_name(op.name), node, target, *keeps)
    return target
