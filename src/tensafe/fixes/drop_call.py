"""`x[rows].clone()` to `x[rows]`: a method whose call is not needed."""

from __future__ import annotations

import ast

from tensafe.findings import DropCall
from tensafe.fixes.edits import Edit, Refusal
from tensafe.fixes.locate import node_at
from tensafe.fixes.source import Source, has_comment, path_of

ORDER = 'order="C"'


def edits(action: DropCall, source: Source) -> list[Edit]:
    """The edits, or `Refusal`."""
    node = node_at(
        source,
        action.site,
        lambda node: isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute),
    )
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Attribute)
    if node.args or node.keywords:
        raise Refusal("only a call without arguments can be dropped")
    dot = source.text.rindex(".", 0, source.span(node.func)[1])
    kept = source.text[:dot].rstrip()
    if kept.endswith("\\"):
        raise Refusal("the line goes on behind a backslash")
    start, end = len(kept), source.span(node)[1]
    if has_comment(source.text[start:end]) or "#" in kept.rpartition("\n")[2]:
        raise Refusal("a comment beside the call would be lost or hide the rest")
    maker = _array_for_tensor(node, source)
    return [*(_as_array(maker, source) if maker else []), Edit(start, end, "")]


def _array_for_tensor(node: ast.Call, source: Source) -> ast.Call | None:
    """`np.array(x)` of `torch.tensor(np.array(x).copy())`: of three copies the last one is enough."""
    assert isinstance(node.func, ast.Attribute)
    maker, taker = node.func.value, next(source.parents(node))
    if not (isinstance(maker, ast.Call) and isinstance(taker, ast.Call) and taker.args[:1] == [node]):
        return None
    if not (_is(taker.func, "torch", "tensor", source) and _is(maker.func, "numpy", "array", source)):
        return None
    plain = len(maker.args) == 1 and not isinstance(maker.args[0], (ast.Starred, ast.GeneratorExp))
    return maker if plain and all(word.arg == "dtype" for word in maker.keywords) else None


def _is(function: ast.expr, module: str, name: str, source: Source) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr == name
        and path_of(function.value) in source.module_names.get(module, ())
    )


def _as_array(maker: ast.Call, source: Source) -> list[Edit]:
    """`np.asarray` copies no array; with the order of `.copy()` the tensor is the same for any `x`."""
    after_name, end = source.span(maker.func)[1], source.span(maker)[1] - 1
    given = source.text[after_name:end].rstrip()
    if has_comment(given):
        return []
    place, comma = after_name + len(given), "" if given.endswith(",") else ","
    return [Edit(after_name - len("array"), after_name, "asarray"), Edit(place, place, f"{comma} {ORDER}")]
