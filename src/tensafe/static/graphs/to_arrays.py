"""Tensors with a graph that are handed to NumPy, which cannot carry a gradient."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tensafe.facts import Kind, Moment, StorageId
from tensafe.facts import Value as Fact
from tensafe.ops import words
from tensafe.static.graphs.known import past_of, surely_requires_grad
from tensafe.static.values import YES, Memory, Sequence, Value

if TYPE_CHECKING:
    from tensafe.static.arguments import Arguments
    from tensafe.static.machine import Machine

# Functions that make an array even of one tensor: others ask the tensor's own method first.
_CONVERT = words(
    """
    array asarray asanyarray ascontiguousarray asfarray copy save savetxt isnan isinf isfinite log log2 log10
    log1p exp expm1 sqrt square abs absolute sign sin cos tanh maximum minimum histogram percentile quantile
    """
)
# Functions that make an array of a list of tensors.
_GATHER = _CONVERT | words(
    """
    mean average median std var sum nanmean nansum min max amin amax argmin argmax stack concatenate vstack
    hstack round cumsum diff
    """
)
CONVERTING = ("sklearn.metrics.", "scipy.stats.", "scipy.special.", "scipy.linalg.")
_DRAW = words("plot scatter hist bar imshow semilogy semilogx loglog fill_between")


def converted(m: Machine, tensor: Memory, node: ast.Call, given: Arguments) -> None:
    """`tensor.numpy()`."""
    if m.grad_on and tensor.grad == YES and "force" not in given.keywords and surely_requires_grad(m, tensor):
        func = node.func
        assert isinstance(func, ast.Attribute)
        _ask(m, tensor, "Tensor.numpy", node, "array", func.value)


def given(m: Machine, name: str, path: str, arguments: Arguments, node: ast.Call) -> None:
    """`np.name(...)` or `plt.name(...)` is given tensors, or lists of them."""
    drawn = (path.startswith("matplotlib") and name in _DRAW) or path.startswith(CONVERTING)
    if (name not in _GATHER and not drawn) or not m.grad_on:  # under `no_grad` PyTorch gives the array
        return
    for operand, value in zip(node.args, arguments.positional, strict=False):
        if type(value) is Memory:
            if (drawn or name in _CONVERT) and value.grad == YES and surely_requires_grad(m, value):
                _ask(m, value, ast.unparse(node.func), node, "array", operand)
                return
        elif (inside := _live_inside(m, value)) is not None:
            _ask(m, inside, ast.unparse(node.func), node, "array of a list", operand)
            return


def _live_inside(m: Machine, value: Value, depth: int = 3) -> Memory | None:
    if type(value) is not Sequence or depth == 0:
        return None
    for item in (*value.items[:3], *((value.rest,) if value.rest is not None else ())):
        if type(item) is Memory and item.grad == YES and surely_requires_grad(m, item):
            return item
        found = _live_inside(m, item, depth - 1)
        if found is not None:
            return found
    return None


def _ask(m: Machine, tensor: Memory, op: str, node: ast.Call, note: str, operand: ast.expr) -> None:
    text = ast.unparse(operand)
    target = Fact(
        frozenset(map(StorageId, tensor.storages)), past_of(tensor), text if len(text) <= 40 else ""
    )
    site = m.frame.source.site(operand, m.frame.label)
    whole = Fact(frozenset(), (Moment(Kind.MADE, "", site, 0),), target.label)
    m.put(Kind.REFUSED, op, node, m.frame, {"target": target, "operand": whole}, note=note)
