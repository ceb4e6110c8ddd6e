"""Parts of large tensors that are put into lists and dicts, and keep the rest alive."""

from __future__ import annotations

import ast

from tensafe.facts import Certainty, Kind, Moment, StorageId
from tensafe.facts import Value as Fact
from tensafe.static import around
from tensafe.static.forms import Part
from tensafe.static.iteration import view_of
from tensafe.static.machine import Machine
from tensafe.static.source import Source
from tensafe.static.values import ARRAY, LIKELY, Memory, Value

SMALL = 0.1  # of the whole: what is left out is worth a warning
LARGE_NBYTES = 65_536


def put(m: Machine, owner: ast.expr, value: Value, node: ast.AST) -> Value:
    """`value` goes into the container spelled `owner`; the answer is what stands in it for all items."""
    if type(value) is not Memory or value.form is None or value.form.part is None:
        return value
    part = value.form.part
    source = m.frame.source
    loop = around.loop_around(source, node)
    if loop is None:
        if _is_kept_by_self(owner) and (part.stepped or _is_fixed(part)):
            _ask(m, owner, value, part, node)
        return value
    bound = around.bound_in(loop)
    if around.mentions(owner, bound):
        return value
    if not _is_new_each_time(m, loop, value, part, bound):
        return _covered(value)
    if _is_fixed(part) or part.stepped:
        _ask(m, owner, value, part, node)
    return value


def collected(m: Machine, value: Memory, loop: around.Loop) -> Value:
    """An item of a comprehension: those that together cover one tensor are no parts any more."""
    if value.form is None or value.form.part is None:
        return value
    part = value.form.part
    if not _is_new_each_time(m, loop, value, part, around.bound_in(loop)):
        return _covered(value)
    if part.frame is not m.frame and _is_fixed(part):  # a helper's own tensor is lost when it returns
        _ask(m, None, value, part, loop)
    return value


def _is_fixed(part: Part) -> bool:
    """Whether it is taken at the same place each time: `x[-1]`, `x.chunk(3)[0]`."""
    if part.fixed or not isinstance(part.node, ast.Call):
        return part.fixed
    outer = next(iter(part.frame.source.around(part.node)), None)
    if isinstance(outer, ast.Assign) and isinstance(outer.targets[0], ast.Tuple):
        return _one_is_kept(part, outer.targets[0])
    return (
        isinstance(outer, ast.Subscript)
        and outer.value is part.node
        and isinstance(outer.slice, ast.Constant | ast.UnaryOp)
    )


def _one_is_kept(part: Part, pieces: ast.Tuple) -> bool:
    """Whether of `first, second = x.split(...)` one alone is put somewhere."""
    source = part.frame.source
    scope = around.function_around(source, pieces)
    names = [one.id for one in pieces.elts if isinstance(one, ast.Name)]
    if part.node is None or around.mentions(_whole_of(part.node), set(names)):
        return False  # a name that had the whole before: what is put somewhere may be that
    kept = [any(_is_put_somewhere(source, load) for load in around.loads(scope, name)) for name in names]
    return kept.count(True) == 1


def _covered(value: Memory) -> Memory:
    whole = view_of(value)
    whole.form = None
    return whole


def _is_new_each_time(m: Machine, loop: around.Loop, value: Memory, part: Part, bound: set[str]) -> bool:
    """Whether each round of the loop takes its part from another tensor."""
    if part.node is None:
        return False
    if part.frame is not m.frame:
        return value.storages[0] > m.round_began
    inside = around.is_in(part.node, loop, m.frame.source)
    return inside and around.mentions(_whole_of(part.node), bound)


def _whole_of(node: ast.AST) -> ast.AST:
    """The expression of which an index or a call takes a part."""
    if isinstance(node, ast.Subscript):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        receiver = node.func.value
        is_library = isinstance(receiver, ast.Name) and receiver.id in ("torch", "th", "np")
        return node.args[0] if is_library and node.args else receiver
    return node


def _is_kept_by_self(owner: ast.expr) -> bool:
    while isinstance(owner, ast.Attribute | ast.Subscript):
        owner = owner.value
    return isinstance(owner, ast.Name) and owner.id == "self"


def _is_held(m: Machine, part: Part) -> bool:
    """Whether the whole is kept as well, or another part of it."""
    assert part.node is not None
    source = part.frame.source
    whole = _whole_of(part.node)
    while not isinstance(whole, ast.Name):
        inner = whole.value if isinstance(whole, ast.Attribute) else _whole_of(whole)
        if inner is whole:
            return False
        whole = inner
    loads = around.loads(around.function_around(source, part.node), whole.id)
    return sum(_is_put_somewhere(source, load) for load in loads) > 1


def _is_put_somewhere(source: Source, load: ast.AST) -> bool:
    """Whether the value read here, or a view of it, is kept as it is."""
    inner = load
    for outer in source.around(load):
        if around.keeps(outer, inner):
            return True
        passes = isinstance(outer, ast.Attribute | ast.Tuple | ast.List | ast.Dict)
        if isinstance(outer, ast.Subscript):
            passes = outer.value is inner
        elif isinstance(outer, ast.Call):
            passes = outer.func is inner
        if not passes:
            return False
        inner = outer
    return False


def _ask(m: Machine, owner: ast.expr | None, value: Memory, part: Part, node: ast.AST) -> None:
    if value.kind == ARRAY or part.node is None or (m.trains and value.grad >= LIKELY):
        return  # the graph keeps what it needs in any case
    if _is_held(m, part) or ast.unparse(_whole_of(part.node)).endswith(("nonzero()", "argwhere()")):
        return
    small = part.share is not None and part.share <= SMALL
    large = small and (part.nbytes == 0 or part.nbytes >= LARGE_NBYTES)
    large = large or (part.stepped and owner is not None and _is_kept_by_self(owner))
    site = part.frame.source.site(part.node, part.frame.label)
    trail = (
        Moment(Kind.VIEWED, "", site, m.past.tick()),
        m.moment(Kind.KEPT, "", node),
    )
    fact = Fact(frozenset(map(StorageId, value.storages)), trail, "")
    certainty = Certainty.MAY if large else Certainty.OFTEN_MEANT
    m.put(Kind.PINNED, "", node, m.frame, {"view": fact}, certainty=certainty)
