"""Saves, pickles and copies of a part of a tensor, which take the whole storage along."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensafe.facts import Certainty, Kind, Moment, StorageId
from tensafe.facts import Value as Fact
from tensafe.ops import words
from tensafe.static import around
from tensafe.static.arguments import Arguments
from tensafe.static.around import keeps
from tensafe.static.forms import Part
from tensafe.static.machine import Machine
from tensafe.static.values import NO, TENSOR, Choice, Mapping, Memory, Sequence, Value

SAVERS = words("pickle.dump pickle.dumps cloudpickle.dumps cloudpickle.dump dill.dump dill.dumps joblib.dump")
WHOLE_STORAGE = 0.5  # as much as this is no waste to speak of


def saved(m: Machine, op: str, given: Arguments, node: ast.Call) -> None:
    """`op` writes its first argument: ask where that is a part of a tensor."""
    value = given.get(0, "obj")
    if value is None:
        return
    held = [memory for memory in _tensors(value) if memory.kind == TENSOR]
    for place, memory in enumerate(held):
        part = memory.form.part if memory.form is not None else None
        if part is None or (op == "copy.deepcopy" and memory.grad != NO and m.grad_on):
            continue
        fellows = [other for other in held[:place] + held[place + 1 :] if _same_whole(other, memory)]
        if not fellows:
            sure = part.sure or _is_one_of_many(part)
            sure = sure and (op != "copy.deepcopy" or _is_small(part) or _is_kept(m, node))
            if sure or part.sure or part.fixed:
                _ask(m, op, memory, part, node, sure)
        elif _share([memory, *fellows]) <= WHOLE_STORAGE:
            _ask(m, op, memory, part, node, True)


def _is_small(part: Part) -> bool:
    return part.share is not None and part.share <= WHOLE_STORAGE


def _is_kept(m: Machine, copy: ast.Call) -> bool:
    """Whether the copy goes on living: one that is used up at once costs time alone."""
    outer = next(iter(m.frame.source.around(copy)), None)
    return outer is not None and keeps(outer, copy)


def _tensors(value: Value, depth: int = 4) -> Iterator[Memory]:
    """The tensors in a saved object."""
    if type(value) is Memory:
        yield value
    elif depth:
        inner: list[Value] = []
        if type(value) is Sequence:
            inner = [*value.items, *([value.rest] if value.rest else [])]
        elif type(value) is Mapping:
            inner = [*value.items.values(), *([value.rest] if value.rest else [])]
        elif type(value) is Choice:
            inner = list(value.options)
        for item in inner:
            yield from _tensors(item, depth - 1)


def _same_whole(one: Memory, other: Memory) -> bool:
    """Whether two tensors look into one storage: pieces of one call have each another name for it."""
    return bool(_roots(one) & _roots(other))


def _roots(memory: Memory) -> set[int]:
    part = memory.form.part if memory.form is not None else None
    return {*memory.storages, *(part.root if part is not None else ())}


def _share(memories: list[Memory]) -> float:
    parts = [memory.form.part if memory.form is not None else None for memory in memories]
    return sum(1.0 if part is None or part.share is None else part.share for part in parts)


def _is_one_of_many(part: Part) -> bool:
    """`x[i]` and `x[i : i + n]` in a loop over `i`: there are others."""
    node = part.node
    if not isinstance(node, ast.Subscript):
        return False
    loop = around.loop_around(part.frame.source, node)
    if not isinstance(loop, ast.For | ast.AsyncFor):
        return False
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    starts = [one.lower if isinstance(one, ast.Slice) else one for one in indices]
    bound = around.bound_in(loop)
    return any(start is not None and around.mentions(start, bound) for start in starts)


def _ask(m: Machine, op: str, memory: Memory, part: Part, node: ast.Call, sure: bool) -> None:
    trail: tuple[Moment, ...] = ()
    if part.node is not None:
        site = part.frame.source.site(part.node, part.frame.label)
        trail = (Moment(Kind.VIEWED, "", site, m.past.tick()),)
    fact = Fact(frozenset(map(StorageId, memory.storages)), trail, _spelled(part))
    certainty = Certainty.MAY if sure else Certainty.OFTEN_MEANT
    m.put(Kind.SERIALISED, op, node, m.frame, {"saved": fact}, certainty=certainty)


def _spelled(part: Part) -> str:
    text = ast.unparse(part.node) if part.node is not None else ""
    return text if len(text) <= 40 else ""
