"""Which form of indexing a subscript is, as far as its text alone can tell."""

from __future__ import annotations

import ast
from enum import Enum

from tensafe.ops.words import words


class Key(str, Enum):
    """What a subscript is known to be; the value is the row that tells of it."""

    NUMBER = "x[0]"
    SLICE = "x[1:3]"
    NEW = "x[..., None]"
    NO_DIMENSION = "x[0-dim tensor]"
    MASK = "x[mask]"
    LIST = "x[[0, 2]]"
    INDEX = "x[index]"
    TRUTH = "x[True]"
    UNSURE = "x[key]"

    @property
    def is_view(self) -> bool:
        """Whether reading by it gives a view, surely."""
        return self in _VIEWS

    @property
    def is_copy(self) -> bool:
        """Whether reading by it gives a copy, surely."""
        return self in _COPIES


_VIEWS = (Key.NEW, Key.SLICE, Key.NO_DIMENSION, Key.NUMBER)  # told by the first that occurs
_COPIES = (Key.MASK, Key.INDEX, Key.LIST, Key.TRUTH)
_WHOLE = frozenset({"int", "len", "ord", "item", "numel", "dim", "size", "__index__", "id"})
_TRUTHS = words(
    """
    bool eq ne lt le gt ge isnan isinf isfinite isin isclose isreal logical_not logical_and logical_or
    logical_xor signbit
    """
)
_SEQUENCES = frozenset(
    {"range", "nonzero", "argwhere", "randperm", "arange", "list", "LongTensor", "BoolTensor"}
)
_MADE_OF = frozenset({"tensor", "array", "asarray", "as_tensor"})
_NAMED = {"index": Key.INDEX, "index_tensor": Key.INDEX}  # what the table's own examples call one
_MODULES = frozenset({"torch", "np", "numpy"})


class NoKeyError(ValueError):
    """A subscript that no tensor takes; the words say why."""


def key_of(node: ast.expr) -> Key:
    """What a subscript surely is; UNSURE where that depends on values; NoKeyError where torch raises."""
    if isinstance(node, ast.Tuple):
        return _together([key_of(one) for one in node.elts])
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    if isinstance(node, ast.Slice):
        _refuse_fractions(node)
        return Key.SLICE
    if isinstance(node, ast.List | ast.ListComp):
        return _list(node)
    if isinstance(node, ast.Set | ast.Dict | ast.JoinedStr | ast.Lambda | ast.SetComp | ast.DictComp):
        raise NoKeyError("only numbers, slices, ..., None, tensors, arrays and lists index a tensor")
    return _computed(node)


def _together(parts: list[Key]) -> Key:
    if not parts:
        return Key.NEW
    copies = [one for one in parts if one.is_copy]
    if copies:
        return copies[0]
    if Key.UNSURE in parts:
        return Key.UNSURE
    return next(one for one in _VIEWS if one in parts)


def _constant(value: object) -> Key:
    if isinstance(value, bool):
        return Key.TRUTH
    if value is None or value is ...:
        return Key.NEW
    if isinstance(value, int):
        return Key.NUMBER
    if isinstance(value, str | bytes):
        raise NoKeyError("a string is no tensor indexing: it is the key of a dict, which gives what it holds")
    raise NoKeyError("a number with a fraction indexes no tensor: torch raises IndexError")


def _refuse_fractions(node: ast.Slice) -> None:
    for one in (node.lower, node.upper, node.step):
        if isinstance(one, ast.Constant) and not isinstance(one.value, int | None):
            raise NoKeyError("only whole numbers bound a slice: torch raises TypeError")


def _list(node: ast.List | ast.ListComp) -> Key:
    """A list of numbers is an index; torch takes a list of tensors, slices or lists for a tuple."""
    if isinstance(node, ast.ListComp):
        return Key.UNSURE
    return Key.LIST if all(_is_plain(one) for one in node.elts) else Key.UNSURE


def _is_plain(node: ast.expr) -> bool:
    if isinstance(node, ast.List):  # a list of lists of numbers is an index, as a whole
        return all(_is_plain(one) for one in node.elts)
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int)


def _computed(node: ast.expr) -> Key:
    if isinstance(node, ast.Compare):
        return Key.MASK
    if isinstance(node, ast.Name):
        return Key.MASK if node.id.lower().endswith("mask") else _NAMED.get(node.id, Key.UNSURE)
    if isinstance(node, ast.UnaryOp):
        return _unary(node)
    if isinstance(node, ast.BinOp):
        return _binary(node)
    if isinstance(node, ast.IfExp):
        return _agreed(key_of(node.body), key_of(node.orelse))
    if isinstance(node, ast.NamedExpr):
        return key_of(node.value)
    return _called(node) if isinstance(node, ast.Call) else Key.UNSURE


def _agreed(one: Key, other: Key) -> Key:
    return one if one is other else Key.UNSURE


def _unary(node: ast.UnaryOp) -> Key:
    if isinstance(node.op, ast.Not):
        return Key.TRUTH
    known = key_of(node.operand)
    if known is Key.TRUTH:  # -True and ~True are whole numbers
        return Key.NUMBER
    return known


def _binary(node: ast.BinOp) -> Key:
    """Masks stay masks under `&`, `|` and `^`; whole numbers stay whole numbers."""
    one, other = key_of(node.left), key_of(node.right)
    if isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor) and one is other is Key.MASK:
        return Key.MASK
    if one is other is Key.NUMBER and not isinstance(node.op, ast.Div | ast.Pow):
        return Key.NUMBER
    return Key.UNSURE


def _called(node: ast.Call) -> Key:
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    of_module = isinstance(function, ast.Name) or (
        isinstance(function, ast.Attribute) and getattr(function.value, "id", "") in _MODULES
    )
    if any(word.arg == "dtype" for word in node.keywords) and name not in ("arange", "randperm"):
        return Key.UNSURE
    if name in _TRUTHS and (isinstance(function, ast.Attribute) or name == "bool"):
        return Key.TRUTH if isinstance(function, ast.Name) else Key.MASK
    if name == "where":
        return Key.INDEX if len(node.args) + len(node.keywords) == of_module else Key.UNSURE
    if name == "slice" and isinstance(function, ast.Name):
        return Key.SLICE
    if name == "argmax" or name == "argmin":
        return Key.NO_DIMENSION if len(node.args) + len(node.keywords) == of_module else Key.UNSURE
    if name in _SEQUENCES and (of_module or name in ("nonzero", "argwhere")):
        return Key.INDEX
    if name in _WHOLE:
        return Key.NUMBER if name != "size" or node.args else Key.UNSURE
    return _made(node) if of_module and name in _MADE_OF and node.args else Key.UNSURE


def _made(node: ast.Call) -> Key:
    """`torch.tensor(...)` of a list is an index tensor, of a number one without dimensions."""
    given = node.args[0]
    if isinstance(given, ast.List):
        return Key.INDEX
    known = key_of(given) if isinstance(given, ast.Constant | ast.UnaryOp) else Key.UNSURE
    return {Key.NUMBER: Key.NO_DIMENSION, Key.TRUTH: Key.TRUTH}.get(known, Key.UNSURE)
