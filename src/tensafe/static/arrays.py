"""NumPy: which functions and methods share memory, and which write."""

from __future__ import annotations

import ast

from tensafe.ops import Dtype, words
from tensafe.static import operations
from tensafe.static.arguments import Arguments
from tensafe.static.costs import fresh_copies, tied_arrays
from tensafe.static.iteration import view_of
from tensafe.static.machine import Machine
from tensafe.static.unknowns import unknown
from tensafe.static.values import ARRAY, NO, TENSOR, THING, Memory, Scalar, Sequence, Value

_SAME = words("asarray asanyarray ascontiguousarray squeeze expand_dims atleast_1d atleast_2d")
_VIEWS = words("reshape ravel transpose swapaxes moveaxis broadcast_to rollaxis")
_VIEW_METHODS = words("reshape ravel transpose squeeze view swapaxes diagonal")
_WRITING_METHODS = words("fill sort partition put itemset resize setfield")
_WRITING_FUNCTIONS = words("copyto put place putmask fill_diagonal put_along_axis")
_MASKS = words(
    """
    isnan isinf isfinite isclose logical_and logical_or logical_not isin equal greater less
    """
)
_INDICES = words("argsort nonzero flatnonzero argwhere arange permutation")


def function(m: Machine, name: str, path: str, given: Arguments, node: ast.Call) -> Value:
    """`np.name(...)`."""
    first = given.get(0, "a")
    out = given.keywords.get("out")
    if type(out) is Memory:
        operations.write(m, _as_array(out), f"np.{name}", node)
        return out
    if name in ("savez", "savez_compressed"):
        tied_arrays.saved(m, f"numpy.{name}", given, node)
    if name in _WRITING_FUNCTIONS and type(first) is Memory:
        operations.write(m, _as_array(first), f"np.{name}", node)
        return first
    if name in _SAME | _VIEWS and type(first) is Memory:
        return _view(first, exact=name in _SAME and first.kind != THING)
    return _made(m, name, given)


def _as_array(memory: Memory) -> Memory:
    if memory.kind == THING:
        memory.kind = ARRAY
    return memory


def _view(source: Memory, exact: bool) -> Memory:
    view = view_of(source)
    view.kind = ARRAY
    view.exact = source.exact and exact
    view.hidden = view.hidden or source.kind == TENSOR
    view.grad, view.base = NO, None
    return view


def _made(m: Machine, name: str, given: Arguments) -> Value:
    if name[:1].islower() and not name.startswith(("int", "float", "bool")):
        made = m.fresh(ARRAY)
        made.cuts = operations.cuts_of(given.all)
        if name in _MASKS:
            made.dtype, made.spread = Dtype.BOOL, True
        elif name in _INDICES:
            made.dtype, made.spread = Dtype.INTEGER, True
        return Sequence([], made, "tuple") if name == "nonzero" else made
    return Scalar()


def method(m: Machine, receiver: Memory, name: str, given: Arguments, node: ast.Call) -> Value:
    """`array.name(...)`."""
    out = given.keywords.get("out")
    if type(out) is Memory:
        operations.write(m, _as_array(out), f"ndarray.{name}", node)
        return out
    if name in _WRITING_METHODS:
        operations.write(m, receiver, f"ndarray.{name}", node)
        return receiver
    if name in _VIEW_METHODS:
        return _view(receiver, exact=name != "ravel")
    if name == "copy" and isinstance(node.func, ast.Attribute):
        fresh_copies.copied(m, "ndarray.copy", receiver, node.func.value, node)
    if name in ("sum", "mean", "max", "min", "item", "std", "var", "any", "all", "copy", "astype"):
        made = m.fresh(ARRAY)
        made.cuts = receiver.cuts
        if name == "astype" and receiver.dtype is not Dtype.UNKNOWN:
            made.dtype = Dtype.UNKNOWN
        return made
    return unknown(m, given, name, receiver)
