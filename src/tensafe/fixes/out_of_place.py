"""`x += y` to `x = x + y`, `x.add_(y)` to `x = x.add(y)`, `return x.mul_(2)` to `return x.mul(2)`."""

from __future__ import annotations

import ast

from tensafe.findings import OutOfPlace
from tensafe.fixes.aliases import alias_read_later
from tensafe.fixes.edits import Edit, Refusal
from tensafe.fixes.holders import list_read_later
from tensafe.fixes.locate import node_at
from tensafe.fixes.names import is_read_later, is_shared
from tensafe.fixes.source import Source, path_of
from tensafe.fixes.twins import FUNCTION_MODULES, METHODS, VIEW_METHODS, VIEW_PROPERTIES

OPERATORS: dict[type[ast.operator], tuple[str, int]] = {  # with how strongly each binds
    ast.BitOr: ("|", 1),
    ast.BitXor: ("^", 2),
    ast.BitAnd: ("&", 3),
    ast.LShift: ("<<", 4),
    ast.RShift: (">>", 4),
    ast.Add: ("+", 5),
    ast.Sub: ("-", 5),
    ast.Mult: ("*", 6),
    ast.Div: ("/", 6),
    ast.FloorDiv: ("//", 6),
    ast.Mod: ("%", 6),
    ast.MatMult: ("@", 6),
    ast.Pow: ("**", 8),
}
ACCEPTED = (ast.AugAssign, ast.Assign, ast.Return, ast.Call)
LOOSE = (
    ast.BoolOp, ast.Compare, ast.GeneratorExp, ast.IfExp, ast.Lambda, ast.NamedExpr,
    ast.Starred, ast.Tuple, ast.Yield, ast.YieldFrom,
)  # fmt: skip


def edits(action: OutOfPlace, source: Source) -> list[Edit]:
    """The edits, or `Refusal`."""
    node = node_at(source, action.site, lambda node: isinstance(node, ACCEPTED))
    if isinstance(node, ast.AugAssign):
        return _augmented(node, source)
    value = node.value if isinstance(node, (ast.Assign, ast.Return)) else node
    if isinstance(value, ast.Call) and not _through_index(node):
        return _call(value, source)
    raise Refusal("a write through an index has no out-of-place twin")


def _through_index(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(target, ast.Subscript) for target in node.targets)


def _augmented(node: ast.AugAssign, source: Source) -> list[Edit]:
    path = _named(node.target, source)
    _refuse_lost(node, path, source)
    sign, strength = OPERATORS[type(node.op)]
    target_end, value_start = source.span(node.target)[1], source.span(node.value)[0]
    at = source.text.index(f"{sign}=", target_end, value_start)
    words = source.segment(node.target)
    found = [Edit(at, at + len(sign) + 1, f"= {words} {sign}")]
    if needs_parentheses(node.value, sign, strength) and not _parenthesised(node, source, at + len(sign) + 1):
        start, end = source.span(node.value)
        found += [Edit(start, start, "("), Edit(end, end, ")")]
    return found


def needs_parentheses(value: ast.expr, sign: str, strength: int) -> bool:
    """Whether `x SIGN value` would be read differently from `x SIGN (value)`."""
    if isinstance(value, LOOSE) or (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)):
        return True
    if isinstance(value, ast.BinOp):
        inner = OPERATORS[type(value.op)][1]
        return inner < strength or (inner == strength and sign != "**")
    return False  # a minus sign binds less than `**`, but to the right of one it needs no parentheses


def _parenthesised(node: ast.AugAssign, source: Source, after: int) -> bool:
    return source.text[after : source.span(node)[1]].strip(" \t\\\r\n\f") != source.segment(node.value)


def _call(node: ast.Call, source: Source) -> list[Edit]:
    inplace = next((word for word in node.keywords if word.arg == "inplace"), None)
    if inplace is not None:
        return _keyword(node, inplace, source)
    owner, _, name = (path_of(node.func) or "").rpartition(".")
    if name in FUNCTION_MODULES.get(owner, ()) and node.args:
        return [_without_underscore(node.func, source), *_rebound(node, node.args[0], source)]
    return _methods(node, source)


def _keyword(node: ast.Call, inplace: ast.keyword, source: Source) -> list[Edit]:
    if not isinstance(inplace.value, ast.Constant) or inplace.value.value is not True or not node.args:
        raise Refusal("only `inplace=True` can be switched off")
    start, end = source.span(inplace.value)
    return [Edit(start, end, "False"), *_rebound(node, node.args[0], source)]


def _methods(node: ast.Call, source: Source) -> list[Edit]:
    """A chain of in-place methods, as far as it reaches: all of it when it is the whole statement."""
    statement = source.statement(node)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        node = statement.value if node in _chain(statement.value) else node
    chain = _chain(node)
    if not chain:
        raise Refusal("it is not the call of an in-place method")
    found = []
    base: ast.expr = node
    for call in chain:
        assert isinstance(call.func, ast.Attribute)
        if not _is_in_place(call.func.attr):
            break
        if call.func.attr not in METHODS:
            raise Refusal(f"`{call.func.attr}` has no out-of-place twin of the same meaning")
        found.append(_without_underscore(call.func, source))
        base = call.func.value
    if not found:
        raise Refusal("it is not the call of an in-place method")
    return [*found, *_rebound(node, base, source)]


def _chain(node: ast.expr) -> list[ast.Call]:
    """`x.a_().b_()` as its calls, the outermost first."""
    calls = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        calls.append(node)
        node = node.func.value
    return calls


def _is_in_place(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _without_underscore(function: ast.expr, source: Source) -> Edit:
    end = source.span(function)[1]
    return Edit(end - 1, end, "")


def _rebound(node: ast.Call, base: ast.expr, source: Source) -> list[Edit]:
    """What makes the result take the place of `base`: an assignment in front, or nothing."""
    statement = source.statement(node)
    if isinstance(statement, ast.Expr) and statement.value is node:
        path = _named(base, source)
        _refuse_lost(statement, path, source)
        start = source.span(statement)[0]
        return [Edit(start, start, f"{path} = ")]
    if path_of(base) is None:
        _refuse_view(base)
        return []
    path = _named(base, source)
    _refuse_alias(node, path, source)
    if (
        isinstance(statement, ast.Assign)
        and path in map(path_of, statement.targets)
        and statement.value is node
    ):
        return []
    _refuse_still_read(node, statement, path, source)
    return []


def _refuse_still_read(node: ast.Call, statement: ast.stmt, path: str, source: Source) -> None:
    """The value goes elsewhere; nobody may look for it under the old name."""
    if "." in path:
        raise Refusal(f"`{path}` is written within a larger expression, and others may read it")
    inside = set(ast.walk(node))
    nested = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr)
    for parent in source.parents(node):
        if parent is statement:
            break
        if isinstance(parent, nested):
            raise Refusal(f"`{path}` is written within a larger expression, and may be read after it")
    again = any(isinstance(n, ast.Name) and n.id == path and n not in inside for n in ast.walk(statement))
    returns = isinstance(statement, ast.Return) and not is_shared(source, source.scope(node), path)
    if again or not (returns or not is_read_later(source, node, path)):
        raise Refusal(f"`{path}` is written within a larger expression, and read after it")


def _refuse_view(base: ast.expr) -> None:
    if isinstance(base, ast.Subscript):
        raise Refusal("the write goes through an index into another tensor")
    method = base.func.attr if isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute) else ""
    if method in VIEW_METHODS or (isinstance(base, ast.Attribute) and base.attr in VIEW_PROPERTIES):
        raise Refusal("the write goes through a view of another tensor")
    if isinstance(base, ast.Attribute):
        raise Refusal("the written tensor has no name that can be bound again")


def _named(target: ast.expr, source: Source) -> str:
    """`x` or `self.x`; refuses what cannot be bound again with the same effect."""
    path = path_of(target)
    if path is None:
        _refuse_view(target)
        raise Refusal("the written tensor has no name that can be bound again")
    if isinstance(target, ast.Attribute) and target.attr in VIEW_PROPERTIES:
        raise Refusal(f"the write goes through `.{target.attr}` of another tensor")
    if isinstance(target, ast.Attribute) and _may_be_parameter(target, source):
        raise Refusal(f"`{path}` may be a parameter, which a module lets nobody replace by a tensor")
    return path


def _may_be_parameter(target: ast.Attribute, source: Source) -> bool:
    """`layer.weight`, and attributes to which this file assigns an `nn.Parameter`."""
    made = [
        fill.value for fill in source.fills.get(path_of(target) or "", []) if isinstance(fill, ast.Assign)
    ]
    return target.attr.endswith(("weight", "bias")) or any(
        isinstance(value, ast.Call) and (path_of(value.func) or "").endswith("Parameter") for value in made
    )


def _refuse_lost(statement: ast.stmt, path: str, source: Source) -> None:
    """`for p in params: p += 1` would bind a name that nobody reads."""
    if "." not in path and not is_read_later(source, statement, path):
        raise Refusal(f"nothing reads `{path}` afterwards: the new tensor would be lost")
    _refuse_alias(statement, path, source)


def _refuse_alias(node: ast.AST, path: str, source: Source) -> None:
    alias = alias_read_later(source, node, path)
    if alias:
        raise Refusal(f"`{alias}` is the same tensor, and would keep the old values")
    held = list_read_later(source, node, path)
    if held:
        raise Refusal(f"`{held}` holds the same tensor, and would keep the old values")
