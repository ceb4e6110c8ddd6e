"""Writes through one of two names of one function, both of which are read afterwards."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensafe.facts import Certainty, Kind
from tensafe.static import around
from tensafe.static.aliasing.writing import Writing, holds, is_parameter, moment_in, shares, target_of
from tensafe.static.values import ARRAY, TENSOR, Instance, Mapping, Memory, Sequence
from tensafe.syntax.chains import MAY_COPY, NEVER_COPIES, Origin, default_of, made_from
from tensafe.syntax.reading import binds, dotted

_LABELS = re.compile(r"label|target|gold", re.IGNORECASE)
_INPUTS = re.compile(r"^(?!.*(label|target)).*(input|token|ids|image|pixel|text|source)", re.IGNORECASE)
_LAID_OUT_ANEW = frozenset({"expand", "expand_as", "permute", "transpose", "t"})  # a copy, once contiguous
_NUMBERS = re.compile(r"(^|_)(n|num|nb|count|steps?|size|len|length|index|idx|pos|offset|max|min)(_|$)")
_FLOATS = frozenset({"float", "double", "half", "bfloat16"})
_INTEGERS = re.compile(
    r"ind(ex|ices)|idx|ids?$|mask|label|target|len(gth)?s?$|count|num|pixel|uint8|byte", re.IGNORECASE
)
_SCRATCH = re.compile(r"buf|scratch|workspace|tmp|temp", re.IGNORECASE)
_SHAPED_LIKE = frozenset({"reshape_as", "view_as", "expand_as", "type_as"})
_KEEPING = frozenset({"detach", "cpu", "to", "float", "contiguous"})


def default_argument(at: Writing) -> bool:
    """The default value of an argument, which is made once and then written in every call."""
    made = at.m.books.defaults.get(at.target.storages[0])
    if made is None or len(at.target.storages) > 1 or at.name.startswith("_") or "cache" in at.name:
        return False
    return default_of(at.frame.node, at.name) is not None and at.tell("default", (made,))


def two_names(at: Writing) -> bool:
    """`labels = input_ids; labels.masked_fill_(...)`, and both are read afterwards."""
    others = [
        name
        for name, value in at.frame.scope.items()
        if name != at.name and shares(value, at.target) and not is_parameter(value)
    ]
    if not others or at.statement is None or _counts(at):
        return False
    origin = made_from(at.syntax, at.name, at.statement.lineno)
    if origin is not None and _is_given_back(at, dotted(origin.root)):
        return False
    if origin is not None and dotted(origin.root) in others and _surprises(at, origin):
        name = dotted(origin.root)
        read = _both_read(at, name)
        sure = _certainty(at, origin)
        if read is not None and _may_exclude(at, read, origin.statement):
            return False
        return read is not None and at.tell("names", (*at.made(origin), at.read(read)), name, sure)
    return any(_kept(at, name) for name in others)


def _is_given_back(at: Writing, name: str) -> bool:
    """`flat = x.flatten(); flat[i] = 0; x = flat.reshape(shape)`: the write is to be one to both names."""
    assert at.statement is not None
    return any(
        statement.lineno > at.statement.lineno and _views(value) == at.name
        for statement, value in at.syntax.assignments(name)
    )


def _views(node: ast.expr) -> str:
    """The name in `name.reshape(shape)` and `name.view_as(x)`, or nothing."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in NEVER_COPIES and node.func.attr not in MAY_COPY:
            return ""
        node = node.func.value
    return dotted(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _counts(at: Writing) -> bool:
    """Whether `n_steps += step` counts: whatever was seen of the value, the name speaks of a number."""
    node = at.node
    is_name = isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    return is_name and _NUMBERS.search(at.name) is not None


def _certainty(at: Writing, origin: Origin) -> Certainty:
    """Who gives a tensor a second name and calls a method that says that it writes may well mean both.

    Labels made of the inputs are to be others.
    """
    name = dotted(origin.root)
    are_labels = bool(_LABELS.search(at.name)) and not _LABELS.search(name)
    says_so = isinstance(at.node, ast.Call) and not origin.makers and not are_labels
    return Certainty.OFTEN_MEANT if says_so or _are_told_apart(at, name) else Certainty.MAY


def _are_told_apart(at: Writing, name: str) -> bool:
    """Whether the function asks `a is not b` of the two names: its author knows that they may be one."""
    names = {at.name, name}
    return any(
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.Is | ast.IsNot)
        and {dotted(node.left), dotted(node.comparators[0])} == names
        for node in at.syntax.own
    )


def _both_read(at: Writing, name: str) -> ast.expr | None:
    """Where the other name is read after the write, if the written one is, too."""
    assert at.statement is not None
    read = at.syntax.read_after(at.statement, name)
    if read is None or at.syntax.read_after(at.statement, at.name) is None:
        return None
    call = at.syntax.parents.get(read)
    is_shape = isinstance(call, ast.Call) and read in call.args and _last_name(call) in _SHAPED_LIKE
    return None if is_shape else read


def _last_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _surprises(at: Writing, origin: Origin) -> bool:
    """Whether one may take the two names for two tensors."""
    if not origin.makers and isinstance(origin.statement, ast.Assign):
        return isinstance(origin.statement.value, ast.Name) and isinstance(at.root, ast.Name)
    if "data" in origin.makers or (_FLOATS & set(origin.makers) and _INTEGERS.search(dotted(origin.root))):
        return False
    return origin.may_copy or (origin.detaches and at.target.exact)


def _kept(at: Writing, name: str) -> bool:
    """`before = x; x.add_(1)`, and both are read afterwards."""
    if not isinstance(at.root, ast.Name) or at.statement is None:
        return False
    if not at.target.exact or at.target.moved or _is_joined(at.target):
        return False
    origin = made_from(at.syntax, name, _end_of_loop(at) or at.statement.lineno - 1)
    if origin is None or dotted(origin.root) != at.name or origin.statement is None:
        return False
    if any(maker not in _KEEPING for maker in origin.makers) or not _is_plain(origin.statement):
        return False
    if not origin.may_copy and not _is_exact(at, name):
        return False
    read = _both_read(at, name)
    if read is None or _is_narrowed(at, origin.statement) or _rules_out(at, read):
        return False
    if _may_exclude(at, read, origin.statement):
        return False
    written = moment_in(at.m, at.frame, Kind.WRITTEN, at.op, at.node)
    return at.tell("kept", (written, at.read(read)), name, at=origin.statement)


def _may_exclude(at: Writing, read: ast.expr, made: ast.stmt | None) -> bool:
    """Whether the write and the read hang on two questions: nobody knows that both come in one run."""
    common = set(_conditions(at, made)) if made is not None else set()
    write = [one for one in _conditions(at, at.node) if one not in common]
    if any((question, not arm) in common for question, arm in write):
        return True  # the second name is made in the other arm
    if made is not None and _is_part_of_round(at, made, read):
        return True
    return bool(write) and any(one not in write and one not in common for one in _conditions(at, read))


def _is_part_of_round(at: Writing, made: ast.stmt, read: ast.expr) -> bool:
    """Whether the other name is read where the next round of a loop takes another part of it: `x[:, i:j]`."""
    owner = at.syntax.parents.get(read)
    loop = around.loop_around(at.frame.source, made)
    if loop is None or not isinstance(owner, ast.Subscript) or at.syntax.statement(read) is not made:
        return False
    return around.mentions(owner.slice, around.bound_in(loop))


def _conditions(at: Writing, node: ast.AST) -> Iterator[tuple[ast.If, bool]]:
    """The conditions around a node, each with the arm that the node is in."""
    here: ast.AST | None = at.syntax.parents.get(node)
    inner: ast.AST = node
    while here is not None:
        if isinstance(here, ast.If) and inner is not here.test:
            yield here, inner in here.body
        inner, here = here, at.syntax.parents.get(here)


def _rules_out(at: Writing, read: ast.expr) -> bool:
    """`x.masked_fill_(mask, -inf); i = x.topk(k)[1]; before.gather(1, i)` reads nothing that was written."""
    call, method = at.node, at.syntax.parents.get(read)
    if not isinstance(call, ast.Call) or not at.op.endswith("masked_fill_"):
        return False
    is_gathered = isinstance(method, ast.Attribute) and method.attr == "gather"
    return is_gathered and any("inf" in ast.unparse(value) for value in call.args)


def _is_narrowed(at: Writing, kept: ast.stmt) -> bool:
    """`padded = x; x = x[:n]`: the name that was kept is the larger view, and means to show the write."""
    return any(
        statement.lineno > kept.lineno and isinstance(value, ast.Subscript) and dotted(value.value) == at.name
        for statement, value in at.syntax.assignments(at.name)
    )


def batch_field(at: Writing) -> bool:
    """`labels = batch["input_ids"]; labels[labels == pad] = -100`, and the batch goes on with both."""
    if at.statement is None or not isinstance(at.root, ast.Name) or not _LABELS.search(at.name):
        return False
    found = [one for one, _ in at.syntax.assignments(at.name) if one.lineno <= at.statement.lineno]
    made = found[-1] if found else None
    value = made.value if isinstance(made, ast.Assign) else None
    if not isinstance(value, ast.Subscript | ast.Attribute) or not isinstance(value.value, ast.Name):
        return False
    key = value.slice if isinstance(value, ast.Subscript) else ast.Constant(value.attr)
    if not isinstance(key, ast.Constant) or not _INPUTS.search(str(key.value)):
        return False
    read = _both_read(at, value.value.id)
    if read is None or made is None:
        return False
    origin = Origin(value, (), made)
    return at.tell("names", (*at.made(origin), at.read(read)), dotted(value))


def shallow_copy(at: Writing) -> bool:
    """`new = dict(batch); new["image"] *= 2`: the copy is another dict of the same tensors."""
    target = target_of(at.node)
    if at.statement is None or not isinstance(at.root, ast.Name) or not isinstance(target, ast.Subscript):
        return False
    if at.target.kind == ARRAY:  # a list of an array of one dimension holds numbers
        return False
    found = [one for one in at.syntax.assignments(at.name) if one[0].lineno <= at.statement.lineno]
    original = _copied_from(found[-1][1]) if found else ""
    held = at.frame.scope.get(original)
    if not isinstance(held, Mapping | Sequence) or not holds(at.m, held, at.target):
        return False
    read = _both_read(at, original)
    if read is None:
        return False
    made = moment_in(at.m, at.frame, Kind.VIEWED, ast.unparse(found[-1][1])[:40], found[-1][0])
    return at.tell("names", (made, at.read(read)), original)


def _copied_from(value: ast.expr) -> str:
    """The name in `dict(x)`, `x.copy()`, `copy.copy(x)` and `{**x}`."""
    if isinstance(value, ast.Dict) and value.values and value.keys[0] is None:
        return dotted(value.values[0]) if isinstance(value.values[0], ast.Name) else ""
    if not isinstance(value, ast.Call):
        return ""
    if isinstance(value.func, ast.Attribute) and value.func.attr == "copy" and not value.args:
        return dotted(value.func.value) if isinstance(value.func.value, ast.Name) else ""
    called = dotted(value.func)
    first = value.args[0] if called in ("dict", "list", "copy.copy", "copy") and value.args else None
    return first.id if isinstance(first, ast.Name) else ""


def own_attribute(at: Writing) -> bool:
    """`mask = self.mask.to(x.dtype); mask += x`: whether that changes the attribute hangs on a type."""
    if at.target.exact or type(at.frame.self_value) is not Instance or at.statement is None:
        return False
    origin = made_from(at.syntax, at.name, at.statement.lineno)
    if origin is None or not origin.converts or not dotted(origin.root).startswith("self."):
        return False
    if _LAID_OUT_ANEW & set(origin.makers):
        return False
    name = dotted(origin.root)
    if _SCRATCH.search(name):
        return False
    held = at.frame.self_value.attributes.get(name[5:])
    if type(held) is not Memory or held.kind != TENSOR or not shares(held, at.target):
        return False
    if any(isinstance(node, ast.stmt) and binds(node, name) for node in at.syntax.own):
        return False
    if at.syntax.read_after(at.statement, at.name) is None:
        return False
    return at.tell("names", at.made(origin), name)


def _end_of_loop(at: Writing) -> int:
    """The last line of the loop around the write: what is kept there is overwritten in the next round.

    Elements that are written one by one may be read in time.
    """
    if at.op.endswith("__setitem__"):
        return 0
    here, end = at.syntax.parents.get(at.node), 0
    while here is not None and not isinstance(here, ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(here, ast.For | ast.While):
            end = here.end_lineno or 0
        here = at.syntax.parents.get(here)
    return end


def _is_joined(target: Memory) -> bool:
    """Whether what is written is another tensor on one of two ways: `x + bias` where there is a bias."""
    memory: Memory | None = target
    while memory is not None and not memory.joined:
        memory = memory.base
    return memory is not None and len(memory.storages) > 1


def _is_exact(at: Writing, name: str) -> bool:
    value = at.frame.scope.get(name)
    return type(value) is Memory and value.exact and not value.joined


def _is_plain(statement: ast.stmt) -> bool:
    """`kept = x.detach()`: names on the left, and all of the tensor on the right."""
    return (
        isinstance(statement, ast.Assign)
        and all(isinstance(target, ast.Name) for target in statement.targets)
        and not any(isinstance(part, ast.Subscript) for part in ast.walk(statement.value))
    )
