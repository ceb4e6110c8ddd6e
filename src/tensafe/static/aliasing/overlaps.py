"""Writes into memory that overlaps itself, or that the same operation also reads."""

from __future__ import annotations

import ast

from tensafe.facts import Certainty, Kind, Moment
from tensafe.facts import Value as Fact
from tensafe.ops import words
from tensafe.static.aliasing.slices import overlap
from tensafe.static.aliasing.writing import Writing, target_of
from tensafe.static.arguments import Arguments
from tensafe.static.machine import Machine
from tensafe.static.values import TENSOR, Constant, Memory, Sequence, Value
from tensafe.syntax.reading import dotted

EMPTY = "empty"
_EXPANDING = words("expand expand_as broadcast_to")
FOLDING = _EXPANDING | {"unfold", "as_strided"}
_ONE_VALUE = words("fill_ zero_ clamp_ clip_ relu_ nan_to_num_")
_TURNED = words("T mT t transpose swapaxes permute")
_ELEMENTWISE = words("copy_ add_ sub_ mul_ div_ floor_divide_ remainder_ pow_ __setitem__")


def folded(m: Machine, name: str, view: Memory, given: Arguments, node: ast.AST) -> None:
    """Remember that several elements of a view are one place in memory, where the call says so."""
    if name in _EXPANDING:
        overlaps = name != "expand" or _grows(given)
    elif name == "unfold":
        overlaps = _windows_meet(given)
    else:
        overlaps = name == "as_strided" and _strides_meet(given)
    if overlaps:
        view.folded = m.moment(Kind.VIEWED, f"Tensor.{name}", node, note=EMPTY if _is_of_empty(node) else "")


def _is_of_empty(node: ast.AST) -> bool:
    """`torch.empty(()).expand(...)`: a stand-in for a shape, as no value was ever in it."""
    owner = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    return isinstance(owner, ast.Call) and dotted(owner.func).rpartition(".")[2].endswith("empty")


def _grows(given: Arguments) -> bool:
    """Whether any size asked of `expand` is other than 1 and -1, which leave a dimension as it is."""
    sizes = given.positional
    if len(sizes) == 1 and type(sizes[0]) is Sequence:
        sizes = sizes[0].items
    return any(not (type(size) is Constant and size.value in (1, -1)) for size in sizes)


def _windows_meet(given: Arguments) -> bool:
    size, step = _number(given.get(1, "size")), _number(given.get(2, "step"))
    return step is not None and (size > step if size is not None else step == 1)


def _strides_meet(given: Arguments) -> bool:
    sizes, strides = _numbers(given.get(0, "size")), _numbers(given.get(1, "stride"))
    if not sizes or len(sizes) != len(strides):
        return False
    reach = 0
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size > 1 and stride <= reach:
            return True
        reach += (size - 1) * stride
    return False


def _number(value: Value | None) -> int | None:
    return value.value if type(value) is Constant and isinstance(value.value, int) else None


def _numbers(value: Value | None) -> list[int]:
    if type(value) is not Sequence or value.rest is not None:
        return []
    found = [_number(item) for item in value.items]
    known = [number for number in found if number is not None]
    return known if len(known) == len(found) else []


def held_by_module(m: Machine, value: Value | None, op: str, node: ast.AST) -> None:
    """A parameter or buffer is made of a folded tensor: the first step, or the first load, is refused."""
    if type(value) is not Memory or value.folded is None or value.folded.note == EMPTY:
        return
    if value.folded.op != "Tensor.expand_as":
        fact = Fact(frozenset(), (value.folded,))
        m.put(Kind.REFUSED, op, node, m.frame, {"target": fact}, note="overlaps itself")


def overlapping_write(at: Writing) -> bool:
    if at.target.kind != TENSOR:
        return False
    if at.target.folded is not None:
        return _itself(at, at.target.folded)
    return _input(at)


def _itself(at: Writing, made: Moment) -> bool:
    name = at.op.rpartition(".")[2]
    values = {"target": Fact(frozenset(), (made,), at.name if at.name.isidentifier() else "")}
    if made.op.rpartition(".")[2] in _EXPANDING:
        if isinstance(at.node, ast.Subscript) and not _writes_all(at.node):
            return False  # one row of the many may be all that there is
        return _ask(at, Kind.REFUSED, values, "overlaps itself")
    if name in _ONE_VALUE or name == "__setitem__":
        return False
    certainty = Certainty.OFTEN_MEANT if name == "add_" else Certainty.MAY
    return _ask(at, Kind.OVERLAPPED, values, "itself", certainty)


def _writes_all(node: ast.Subscript) -> bool:
    """Whether a store goes to slices of the whole, or by a mask."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return isinstance(parts[0], ast.Slice | ast.Compare)


def _input(at: Writing) -> bool:
    """`x[1:] /= x[:-1]`, `x[:, 1:] = x[:, :-1]`, `m.add_(m.T)`."""
    if isinstance(at.node, ast.Call) and at.op.startswith("torch."):
        return _out_over_input(at, at.node)
    written, read = _pair(at)
    if written is None or read is None or at.op.rpartition(".")[2] not in _ELEMENTWISE:
        return False
    values = {"target": Fact(frozenset(), (), _root_name(written))}
    values["operand"] = Fact(frozenset(), (at.m.moment(Kind.MADE, "", read),))
    if dotted(written) == _turned(read):
        return _ask(at, Kind.REFUSED, values, "overlaps its input")
    if not isinstance(written, ast.Subscript) or not isinstance(read, ast.Subscript):
        return False
    if dotted(written.value) != dotted(read.value):
        return False
    shift = overlap(written.slice, read.slice)
    if shift is None:
        return False
    if shift.outermost:
        return _ask(at, Kind.REFUSED, values, "overlaps its input")
    certainty = Certainty.MAY if shift.forward else Certainty.OFTEN_MEANT
    return _ask(at, Kind.OVERLAPPED, values, "input", certainty)


def _out_over_input(at: Writing, call: ast.Call) -> bool:
    """`torch.add(x[:-1], y, out=x[1:])`."""
    out = next((keyword.value for keyword in call.keywords if keyword.arg == "out"), None)
    if not isinstance(out, ast.Subscript):
        return False
    for argument in call.args:
        if isinstance(argument, ast.Subscript) and dotted(argument.value) == dotted(out.value):
            shift = overlap(out.slice, argument.slice)
            if shift is not None:
                values = {"target": Fact(frozenset(), (), _root_name(out))}
                values["operand"] = Fact(frozenset(), (at.m.moment(Kind.MADE, "", argument),))
                return _ask(at, Kind.REFUSED, values, "overlaps its input")
    return False


def _pair(at: Writing) -> tuple[ast.expr | None, ast.expr | None]:
    """What is written, and what is read in the same operation, as the source spells them."""
    node, statement = at.node, at.m.statement
    if isinstance(node, ast.AugAssign):
        return node.target, node.value
    if isinstance(node, ast.Subscript) and isinstance(statement, ast.Assign) and node in statement.targets:
        return node, statement.value
    if isinstance(node, ast.Call) and node.args and not at.by_layer:
        return target_of(node), node.args[0]
    return None, None


def _turned(node: ast.expr) -> str:
    """What an expression is a transpose of: `m` for `m.T` and `m.transpose(0, 1)`."""
    if isinstance(node, ast.Call):
        node = node.func
    return dotted(node.value) if isinstance(node, ast.Attribute) and node.attr in _TURNED else ""


def _root_name(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node)


def _ask(
    at: Writing, kind: Kind, values: dict[str, Fact], note: str, certainty: Certainty = Certainty.MAY
) -> bool:
    at.m.put(kind, at.op, _whole(at), at.frame, values, certainty=certainty, note=note)
    return True


def _whole(at: Writing) -> ast.AST:
    """The assignment for a store, so that the line shows both sides."""
    statement = at.m.statement
    if isinstance(at.node, ast.Subscript) and isinstance(statement, ast.Assign):
        return statement
    return at.node
