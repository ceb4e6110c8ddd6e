"""One tensor or module under several places of a container, each of which should have its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensafe.facts import Certainty, Kind
from tensafe.facts import Value as Fact
from tensafe.ops import words
from tensafe.static import around
from tensafe.static.aliasing.books import Repeat
from tensafe.static.aliasing.writing import Writing, moment_in
from tensafe.static.iteration import view_of
from tensafe.static.joins import join
from tensafe.static.machine import Machine
from tensafe.static.values import (
    ARRAY,
    TENSOR,
    Constant,
    Instance,
    Layer,
    Mapping,
    Memory,
    Sequence,
    Value,
)
from tensafe.syntax.reading import dotted, flat

_SAYS_SHARED = re.compile(r"shar|tied|tying|\btie|same (weight|layer|module)|recurren|recursi", re.IGNORECASE)
_WITH_PARAMETERS = words(
    """
    LSTM GRU RNN MultiheadAttention TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder
    TransformerDecoder Transformer Bilinear LSTMCell GRUCell RNNCell
    """
)


def multiplied(m: Machine, value: Value, count: Value, node: ast.AST) -> None:
    """`[x] * n` was made: its items are one object each."""
    if type(value) is Sequence and not (type(count) is Constant and count.value in (0, 1)):
        value.items = [repeated(m, item, node) for item in value.items]
        value.rest = value.items[-1] if value.items else value.rest


def comprehended(
    m: Machine, made: Value, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
) -> None:
    """`[x for _ in range(n)]`, where `x` is none of the loop's own names."""
    element = node.value if isinstance(node, ast.DictComp) else node.elt
    if not isinstance(element, ast.Name) or len(node.generators) != 1 or node.generators[0].ifs:
        return
    bound = [part.id for part in flat(node.generators[0].target) if isinstance(part, ast.Name)]
    if element.id in bound:
        return
    if type(made) is Sequence:
        made.items = [repeated(m, item, node) for item in made.items]
    if isinstance(made, Sequence | Mapping) and made.rest is not None:
        made.rest = repeated(m, made.rest, node)


def repeated(m: Machine, value: Value, node: ast.AST) -> Value:
    """An object that now stands under several places of a container."""
    if type(value) is Memory and value.kind in (TENSOR, ARRAY) and value.exact and not _has_no_elements(node):
        twin = view_of(value)
        twin.base, twin.leaf = value.base, value.leaf
        m.books.repeats[id(twin)] = Repeat(twin, node, m.frame)
        return twin
    if isinstance(value, Layer | Instance) and has_parameters(value):
        m.books.repeats.setdefault(id(value), Repeat(value, node, m.frame))
    return value


def _has_no_elements(node: ast.AST) -> bool:
    """Whether the repeated tensor is made with no elements, as `torch.zeros((0, 6))`, to be replaced."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and call.args:
            size = call.args[0]
            if isinstance(size, ast.Tuple) and size.elts:
                size = size.elts[0]
            if isinstance(size, ast.Constant) and size.value == 0 and type(size.value) is int:
                return True
            if isinstance(size, ast.List | ast.Tuple) and not size.elts:
                return True
    return False


def appended(m: Machine, value: Value, node: ast.Call) -> None:
    """`layers.append(block)` in a loop, where `block` was made before it."""
    if not isinstance(value, Layer | Instance) or not node.args or not isinstance(node.args[0], ast.Name):
        return
    loop = around.loop_around(m.frame.source, node)
    if loop is None or node.args[0].id in around.bound_in(loop):
        return  # each call, or each round, gives the name another
    before = m.books.appended.get(node)
    m.books.appended[node] = value
    if before is value and has_parameters(value):
        m.books.repeats.setdefault(id(value), Repeat(value, node, m.frame))


def has_parameters(value: Value, depth: int = 3) -> bool:
    """Whether a module certainly has weights."""
    if type(value) is Layer:
        owns = value.op is not None and value.op.owns_parameters
        known = owns or value.name in _WITH_PARAMETERS
        return known or (depth > 0 and any(has_parameters(one, depth - 1) for one in value.children))
    if type(value) is Instance and value.cls.kind == "module" and depth > 0:
        return any(
            has_parameters(one, depth - 1) or (type(one) is Memory and one.leaf)
            for one in value.attributes.values()
        )
    return False


def written_in_one_place(at: Writing) -> bool:
    """A tensor of such a container is written, as if the others stayed as they are."""
    memory: Memory | None = at.target if at.m.books.repeats else None
    while memory is not None:
        repeat = at.m.books.repeats.get(id(memory))
        if repeat is not None:
            return _tell(at.m, repeat, "tensor", at.op, at.node)
        memory = memory.base
    return False


def all_adopted(m: Machine, children: list[Value | None], node: ast.AST) -> None:
    for child in children:
        if child is not None:
            adopted(m, child.rest if type(child) is Mapping and child.rest is not None else child, node)


def adopted(m: Machine, child: Value, node: ast.AST) -> None:
    """A container module gets a child that stands in a repeated list."""
    repeat = m.books.repeats.get(id(child))
    if repeat is not None and isinstance(child, Layer | Instance):
        _tell(m, repeat, "module", "Module.add_module", node)


def _tell(m: Machine, repeat: Repeat, note: str, op: str, node: ast.AST) -> bool:
    source = repeat.frame.source
    if m.books.tells((source.path, "repeat", getattr(repeat.node, "lineno", 0))):
        used = moment_in(m, m.frame, Kind.REPEATED, op, node)
        meant = _says_shared(m, repeat) or (note == "module" and _may_be_meant(m, repeat, node))
        certainty = Certainty.OFTEN_MEANT if meant else Certainty.MAY
        values = {"repeated": Fact(frozenset(), (used,))}
        m.put(Kind.REPEATED, op, repeat.node, repeat.frame, values, certainty=certainty, note=note)
    return True


def _may_be_meant(m: Machine, repeat: Repeat, node: ast.AST) -> bool:
    """Whether a module that has a name is repeated where one head for all layers is an idiom."""
    of_list = repeat.node.left if isinstance(repeat.node, ast.BinOp) else None
    if of_list is not None and any(isinstance(part, ast.Call) for part in ast.walk(of_list)):
        return False
    if not (isinstance(node, ast.Call) and dotted(node.func).endswith("Sequential")):
        return True
    parents = m.books.syntax(repeat.frame.node).parents
    here = parents.get(repeat.node)
    while here is not None and not isinstance(here, ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(here, ast.If) and here.orelse:
            return True
        here = parents.get(here)
    return False


def slot_stored(m: Machine, owner: Sequence, value: Value) -> None:
    """`slots[i] = x`: from now on any of the places may have its own."""
    owner.items = [join(item, value) if id(item) in m.books.repeats else item for item in owner.items]
    if owner.rest is not None and id(owner.rest) in m.books.repeats:
        owner.rest = join(owner.rest, value)


def _conditions(m: Machine, repeat: Repeat) -> Iterator[ast.expr]:
    """What is asked before the object is repeated."""
    parents = m.books.syntax(repeat.frame.node).parents
    here = parents.get(repeat.node)
    while here is not None:
        if isinstance(here, ast.If | ast.IfExp):
            yield here.test
        here = parents.get(here)


def _says_shared(m: Machine, repeat: Repeat) -> bool:
    """Whether the author says at this line, right above, or in a condition, that the object is shared."""
    if any(_SAYS_SHARED.search(ast.unparse(test)) for test in _conditions(m, repeat)):
        return True
    line = getattr(repeat.node, "lineno", 1)
    before, own = ["", *repeat.frame.source.text.splitlines()][line - 1 : line + 1]
    return bool(_SAYS_SHARED.search(before.partition("#")[2]) or _SAYS_SHARED.search(own))
