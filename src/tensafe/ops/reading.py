"""Reads an expression or a statement as the operations it runs, one after another, on one tensor."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from tensafe.ops.layers import FUNCTIONS
from tensafe.ops.subscripts import Key, key_of
from tensafe.ops.words import words

MODULES = words("torch F nn np numpy math copy pickle functional aten ops Tensor linalg fft special init")
PROPERTIES = words(
    "data T H mT mH real imag shape dtype device ndim nbytes is_leaf requires_grad itemsize layout"
)
BUILTINS = words("float int bool complex len")
_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=",
    ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_UNARY: dict[type[ast.AST], str] = {ast.USub: "-x", ast.UAdd: "+x", ast.Invert: "~x"}
# The tensor that comes second in a function whose first argument is none, or less asked about.
_SECOND = {"einsum": 1, "embedding": 1, "embedding_bag": 1, "where": 1}
_ARRAYS = words("x.numpy np.asarray np.array numpy.asarray numpy.array np.array(x)")
_MIRRORED = {"-": "2 - x", "/": "2 / x", "**": "x.__rpow__"}  # a number at the left is another operation


@dataclass(frozen=True, slots=True)
class Step:
    """One operation: how it stands in the text, and the spelling of its row."""

    text: str
    spelling: str
    copies: bool = False  # told to by an argument
    in_place: bool = False  # told to by an argument
    out: str = ""  # what is given as out=
    key: Key | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The tensor that the steps begin with, and the steps."""

    base: str
    steps: tuple[Step, ...] = ()

    def then(self, step: Step) -> Reading:
        """One step more."""
        return replace(self, steps=(*self.steps, step))


def read(text: str, gives_several: Callable[[str], bool] = lambda spelling: False) -> Reading | None:
    """What the text runs; None where it is no Python, or no operation; NoKeyError where torch refuses a key.

    `gives_several` says of a spelling whether it gives a tuple: its subscripts then take a part.
    """
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if len(body) != 1:
        return None
    return _Reader(gives_several).statement(body[0])


class _Reader:
    def __init__(self, gives_several: Callable[[str], bool]) -> None:
        self.gives_several = gives_several

    def statement(self, node: ast.stmt) -> Reading | None:
        if isinstance(node, ast.Expr):
            return self.expression(node.value)
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            return self._assigned(node.targets[0], node.value)
        return self._augmented(node) if isinstance(node, ast.AugAssign) else None

    def _assigned(self, target: ast.expr, value: ast.expr) -> Reading | None:
        if isinstance(target, ast.Name):
            given = self.expression(value)
            return given if given.steps else given.then(Step(f"{target.id} = {given.base}", "y = x"))
        if isinstance(target, ast.Attribute) and target.attr in ("data", "grad"):
            return self.expression(target.value).then(Step(f".{target.attr} = ...", f"x.{target.attr} = y"))
        if not isinstance(target, ast.Subscript):
            return None
        return self._written(target, " = ", "i", "v")

    def _written(self, target: ast.Subscript, sign: str, number: str, value: str) -> Reading | None:
        key = key_of(target.slice)
        row = number if key.is_view else {Key.MASK: "mask", Key.UNSURE: "key"}.get(key, "index")
        before = self.expression(target.value)
        if sign == " = " and len(before.steps) == 1 and before.steps[0].key not in (None, Key.UNSURE):
            known = before.steps[0].key or Key.UNSURE
            spelling = "x[mask][0] = v" if known.is_copy else "x[0][1] = v"
            return Reading(before.base, (Step(_text(target) + sign + value, spelling),))
        return before.then(Step(f"[{_text(target.slice)}]{sign}{value}", f"x[{row}]{sign}{value}", key=key))

    def _augmented(self, node: ast.AugAssign) -> Reading | None:
        sign = _SIGNS[type(node.op)]
        if isinstance(node.target, ast.Subscript):
            given = self._written(node.target, " += ", "0", "v")
            if given is None or sign == "+":
                return given
            last = replace(given.steps[-1], text=given.steps[-1].text.replace("+=", f"{sign}="))
            return replace(given, steps=(*given.steps[:-1], last))
        return self.expression(node.target).then(Step(f"{sign}= {_text(node.value)}", f"x {sign}= y"))

    def expression(self, node: ast.expr) -> Reading:
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        return self._operator(node) or Reading(_text(node))

    def _attribute(self, node: ast.Attribute) -> Reading:
        if _dotted(node) is not None and _root(node) in MODULES:
            return Reading(_text(node))
        before = self.expression(node.value)
        if node.attr in PROPERTIES:
            return before.then(Step(f".{node.attr}", f"x.{node.attr}"))
        return before if before.steps else Reading(_text(node))

    def _subscript(self, node: ast.Subscript) -> Reading:
        before = self.expression(node.value)
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return before if before.steps else Reading(_text(node))
        if before.steps and self.gives_several(before.steps[-1].spelling):
            return before
        key = key_of(node.slice)
        return before.then(Step(f"[{_text(node.slice)}]", key.value, key=key))

    def _call(self, node: ast.Call) -> Reading:
        name = _dotted(node.func)
        if name is not None and ("." not in name or _root(node.func) in MODULES):
            return self._function(name, node)
        if isinstance(node.func, ast.Attribute):
            before = self.expression(node.func.value)
            text = f".{node.func.attr}({_arguments(node)})"
            if node.func.attr in ("copy", "astype") and before.steps and before.steps[-1].spelling in _ARRAYS:
                return before.then(Step(text, "np.array(x)"))
            return before.then(_told(Step(text, f"x.{node.func.attr}"), node))
        layer = _dotted(node.func.func) if isinstance(node.func, ast.Call) else None
        if layer is not None and layer.rpartition(".")[2] in FUNCTIONS:
            step = _told(Step(_text(node.func), layer), node.func)  # type: ignore[arg-type]
            return self.expression(node.args[0]).then(step) if node.args else Reading("x", (step,))
        return Reading(_text(node))

    def _function(self, name: str, node: ast.Call) -> Reading:
        is_layer = name.rpartition(".")[2] in FUNCTIONS
        place = _SECOND.get(name.rpartition(".")[2], 0) if len(node.args) > 1 else 0
        first = node.args[place] if node.args and not is_layer else None
        before = Reading("x") if first is None else self.expression(first)
        spelling = f"{name}(x)" if name in BUILTINS else name
        if name == "torch.where" and len(node.args) + len(node.keywords) == 1:
            spelling = "torch.where(condition)"
        return before.then(_told(Step(f"{name}({_arguments(node)})", spelling), node))

    def _operator(self, node: ast.expr) -> Reading | None:
        if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY and not _is_number(node):
            spelling = _UNARY[type(node.op)]
            return self.expression(node.operand).then(Step(spelling.replace("x", "..."), spelling))
        if isinstance(node, ast.BinOp):
            return self._two(node.left, _SIGNS[type(node.op)], node.right)
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _SIGNS:
            return self._two(node.left, _SIGNS[type(node.ops[0])], node.comparators[0])
        return None

    def _two(self, left: ast.expr, sign: str, right: ast.expr) -> Reading | None:
        if _is_number(left) and _is_number(right):
            return None
        if not _is_number(left):
            return self.expression(left).then(Step(f"{sign} {_text(right)}", f"x {sign} y"))
        step = Step(f"{_text(left)} {sign}", _MIRRORED.get(sign, f"x {sign} y"))
        return self.expression(right).then(step)


def _told(step: Step, node: ast.Call) -> Step:
    """What arguments say by name: copy=True, inplace=True, out=."""
    given = {word.arg: word.value for word in node.keywords}
    return replace(
        step,
        copies=_is_true(given.get("copy")),
        in_place=_is_true(given.get("inplace")),
        out=_text(given["out"]) if "out" in given else "",
    )


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant)


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None


def _root(node: ast.expr) -> str:
    return (_dotted(node) or "").partition(".")[0]


def _arguments(node: ast.Call) -> str:
    return ", ".join([*map(_text, node.args), *(_text(word) for word in node.keywords)])


def _text(node: ast.AST) -> str:
    return (
        ast.unparse(node).removeprefix("(").removesuffix(")")
        if isinstance(node, ast.Tuple)
        else ast.unparse(node)
    )
