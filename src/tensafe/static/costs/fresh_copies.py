"""Copies of memory that was made in the same breath, and that nobody else can see."""

from __future__ import annotations

import ast

from tensafe.facts import Certainty, Kind, StorageId
from tensafe.facts import Value as Fact
from tensafe.ops import OPS, Gives, Saves, words
from tensafe.static import around
from tensafe.static.costs.names import path_of
from tensafe.static.machine import Machine
from tensafe.static.values import ARRAY, NO, TENSOR, YES, Memory, Value

_WHOLE_VIEWS = words(
    """
    detach unsqueeze squeeze view view_as transpose permute t requires_grad_ numpy reshape T mT data
    """
)
# `.copy()` of an array puts its elements in order, too
_SAME_ARRAY = words("numpy detach")
_MAKERS = words(
    "zeros ones rand randn full arange tensor zeros_like ones_like rand_like randn_like full_like"
)
_ARRAY_MAKERS = words(
    """
    array stack concatenate vstack hstack dstack zeros ones full zeros_like ones_like copy arange where repeat
    tile
    """
)
_MAY_BE_THE_SAME = words(  # a cast to the type it has, a dropout in evaluation
    """
    bool long int short int8 dropout alpha_dropout dropout1d dropout2d dropout3d feature_dropout pixel_shuffle
    pixel_unshuffle
    """
)
_KEEPS_RESULT_TOO = words("cdist scaled_dot_product_attention pow")  # beside its inputs
_SMALL = words(
    """
    sum mean prod norm std var amax amin nansum nanmean mse_loss l1_loss smooth_l1_loss det trace dot
    binary_cross_entropy binary_cross_entropy_with_logits cross_entropy nll_loss kl_div huber_loss logsumexp
    median max min
    """
)


def copied(m: Machine, op: str, source: Value, operand: ast.expr, node: ast.Call) -> None:
    """`op` copies `source`, written as `operand`: ask where nobody but this call holds it."""
    if type(source) is not Memory or source.kind not in (TENSOR, ARRAY) or source.leaf:
        return
    if (
        len(source.storages) != 1
        or node.keywords
        or (source.form is not None and source.form.part is not None)
    ):
        return
    if op == "torch.tensor" and not _is_copying(operand):
        return
    here = _made_here(m, source, operand)
    made = here or _made_before(m, source, operand, node)
    if made:
        trail = [m.moment(Kind.COPIED, op, node, note=made)]
        if here and isinstance(node.func, ast.Attribute) and node.func.value is operand:
            note = "by an argument" if _rests_on_argument(m, operand) else ""
            trail.insert(0, m.moment(Kind.MADE, "", operand, note=note))
        fact = Fact(frozenset(map(StorageId, source.storages)), tuple(trail))
        # `torch.tensor(np.array(rows))` is what PyTorch itself advises for a list of arrays
        advised = op == "torch.tensor" and source.kind == ARRAY
        certainty = Certainty.OFTEN_MEANT if advised else Certainty.MAY
        m.put(Kind.COPIED, op, node, m.frame, {"copy": fact}, certainty=certainty)


def _rests_on_argument(m: Machine, operand: ast.expr) -> bool:
    """Whether it copies for what this caller handed over as index: for another it may be a view."""
    function = around.function_around(m.frame.source, operand)
    arguments = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    subscripts = [node for node in ast.walk(operand) if isinstance(node, ast.Subscript)]
    return any(around.mentions(node.slice, arguments) for node in subscripts)


def _is_copying(operand: ast.expr) -> bool:
    """A call that makes a copy, or an array: a list of numbers may be taken for a tensor here."""
    return isinstance(operand, ast.Call) and ast.unparse(operand.func).rpartition(".")[2] in _ARRAY_MAKERS | {
        "clone",
        "deepcopy",
    }


def _made_here(m: Machine, source: Memory, operand: ast.expr) -> str:
    """How the operand itself makes its memory, "" when something else may hold it."""
    views = _WHOLE_VIEWS if source.kind == TENSOR else _SAME_ARRAY
    while True:
        if isinstance(operand, ast.Attribute) and operand.attr in views:
            operand = operand.value
        elif (
            isinstance(operand, ast.Call)
            and isinstance(operand.func, ast.Attribute)
            and operand.func.attr in views
            and not _is_library(m, operand.func.value)
        ):
            operand = operand.func.value
        elif (
            isinstance(operand, ast.Call) and path_of(m, operand.func) == "torch.from_numpy" and operand.args
        ):
            operand = operand.args[0]
        else:
            return _maker(m, source, operand)


def _maker(m: Machine, source: Memory, operand: ast.expr) -> str:
    if isinstance(operand, ast.Subscript):
        return _index(m, source, operand)
    if isinstance(operand, ast.BinOp | ast.UnaryOp):
        return "arithmetic" if source.kind == TENSOR and not isinstance(operand, ast.UnaryOp) else ""
    if not isinstance(operand, ast.Call):
        return ""
    path = path_of(m, operand.func)
    name = path.rpartition(".")[2]
    if path.startswith("numpy."):
        return f"`np.{name}`" if path == f"numpy.{name}" and _is_array_maker(operand, name) else ""
    if source.kind != TENSOR:
        return ""
    if path.startswith("torch."):
        return f"`{name}`" if name in _MAKERS or _is_fresh(name, source) else ""
    if path or not isinstance(operand.func, ast.Attribute):
        return ""
    return f"`{operand.func.attr}`" if _is_fresh(operand.func.attr, source) else ""


def _is_array_maker(call: ast.Call, name: str) -> bool:
    return name in _ARRAY_MAKERS and not any(word.arg in ("copy", "order", "out") for word in call.keywords)


def _is_fresh(name: str, result: Memory) -> bool:
    """Whether an operation always makes new memory, of some size, which autograd does not keep."""
    op = OPS.get(name)
    if op is None or op.gives is not Gives.FRESH or name in _SMALL | _MAY_BE_THE_SAME:
        return False
    keeps_result = op.saves in (Saves.OUTPUT, Saves.BOTH) or name in _KEEPS_RESULT_TOO
    return not keeps_result or result.grad == NO


def _index(m: Machine, source: Memory, operand: ast.Subscript) -> str:
    """Advanced indexing with one index: its trail names this very place."""
    last = source.trail[-1] if source.trail else None
    if last is None or last.kind is not Kind.COPIED or last.op != "advanced indexing" or last.site is None:
        return ""
    here = m.frame.source.site(operand)
    same = (last.site.line, last.site.column) == (here.line, here.column)
    tuple_of_array = source.kind == ARRAY and isinstance(operand.slice, ast.Tuple)  # in any order
    return last.op if same and not tuple_of_array else ""


def _is_library(m: Machine, node: ast.expr) -> bool:
    return bool(path_of(m, node))


def _made_before(m: Machine, source: Memory, operand: ast.expr, node: ast.Call) -> str:
    """`x = torch.cat(parts)`, and then `x.clone()` as the only use of this `x`."""
    statement = m.statement
    if not isinstance(operand, ast.Name) or not isinstance(statement, ast.Assign) or source.base is not None:
        return ""
    if source.kind != TENSOR:
        return ""
    block = around.block_of(m.frame.source, statement)
    place = block.index(statement) if statement in block else 0
    before = block[place - 1] if place else None
    if not isinstance(before, ast.Assign) or not _binds_only(before, operand.id) or source.grad == YES:
        return ""
    if not _binds_only(statement, operand.id):
        function = around.function_around(m.frame.source, statement)
        if sum(1 for _ in around.loads(function, operand.id)) > 1:
            return ""
    if statement.value is not node:
        return ""
    return _made_here(m, source, before.value)


def _binds_only(statement: ast.Assign, name: str) -> bool:
    targets = statement.targets
    return len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name
