"""In-place writes that autograd refuses: to leaves, and to views whose history it could not tell."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from tensafe.facts import Kind, Moment, StorageId
from tensafe.facts import Value as Fact
from tensafe.static.graphs.known import live_leaf, may_be_replaced, moment_of, records
from tensafe.static.values import TENSOR, YES, Memory, Value

if TYPE_CHECKING:
    from tensafe.static.machine import Machine

SEVERAL, NO_GRAD = "one of several views", "view made under no_grad"
INFERENCE, HOOKED = "view made under inference_mode", "view of a hooked module"
CUSTOM = "view of a custom Function"
_UNRECORDED = frozenset({"embedding_renorm_", "Module.load_state_dict"})


def mark(m: Machine, view: Memory, node: ast.AST | None, note: str, op: str = "") -> None:
    """Remember of a view that it must not be written in place."""
    where = node or m.statement
    if where is not None:
        view.trail = (*view.trail, m.moment(Kind.VIEWED, op, where, note=note))


def without_marks(trail: tuple[Moment, ...]) -> tuple[Moment, ...]:
    """What is left for a detached tensor, which is a view of nothing."""
    return tuple(one for one in trail if one.kind is not Kind.VIEWED) if trail else ()


def viewed(m: Machine, view: Memory, owner: Memory, node: ast.AST | None) -> None:
    """A view was made: under `no_grad` it has no graph, though its base may have one."""
    if not m.grad_on and owner.grad == YES and owner.kind == TENSOR:
        view.grad = 0
        if not m.graphs.inferring:
            mark(m, view, node, NO_GRAD)


def iterated(m: Machine, item: Memory, owner: Memory) -> None:
    """One of the items that a loop or an unpacking took out of a tensor."""
    if m.grad_on:
        mark(m, item, None, SEVERAL, "unbind")
    else:
        viewed(m, item, owner, None)


Spell = Callable[["Machine", ast.AST, Memory], str]


def refused(
    m: Machine, target: Memory, op: str, node: ast.AST, added: tuple[Memory, ...], spell: Spell
) -> bool:
    """Whether PyTorch refuses this write; the rules are asked then."""
    if target.kind != TENSOR or target.hidden or op in _UNRECORDED or not m.grad_on:
        return False
    if target.grad == YES and (leaf := live_leaf(target)) is not None:
        return _of_leaf(m, target, leaf, op, node, spell)
    return bool(target.trail) and _of_view(m, target, op, node, added, spell)


def _of_leaf(m: Machine, target: Memory, leaf: Memory, op: str, node: ast.AST, spell: Spell) -> bool:
    if not records(m, leaf) or may_be_replaced(m, leaf):
        return False
    trail = (moment_of(leaf.made, Kind.MADE),) if leaf.made is not None else ()
    _ask(m, target, op, node, spell(m, node, target), trail, "leaf" if target is leaf else "view of a leaf")
    return True


def _of_view(
    m: Machine, target: Memory, op: str, node: ast.AST, added: tuple[Memory, ...], spell: Spell
) -> bool:
    made = next((one for one in reversed(target.trail) if one.kind is Kind.VIEWED and one.note), None)
    if made is None or target.joined or not target.exact:
        return False
    live = target.grad == YES or any(one.grad == YES and not one.joined for one in added)
    if made.note in (SEVERAL, HOOKED, CUSTOM) and not live:
        return False
    if not (records(m, target) or (m.trains and m.frame.trusted and not m.graphs.refusal_expected)):
        return False
    _ask(m, target, op, node, spell(m, node, target), (made,), made.note)
    return True


def _ask(
    m: Machine, target: Memory, op: str, node: ast.AST, label: str, trail: tuple[Moment, ...], note: str
) -> None:
    fact = Fact(frozenset(map(StorageId, target.storages)), trail, label)
    m.put(Kind.REFUSED, op, node, m.frame, {"target": fact}, note=note)


def hook(m: Machine, storage: int, name: str, node: ast.AST) -> Value:
    """`layer.register_full_backward_hook(...)`: from now on its inputs and outputs are views."""
    m.graphs.hooked[storage] = m.moment(Kind.VIEWED, f"Module.{name}", node, note=HOOKED)
    return m.thing("hook handle")


def behind_hook(m: Machine, value: Value, hook: Moment) -> Value:
    """What a hooked layer takes and gives: views that a custom Function made."""
    if type(value) is not Memory or value.kind != TENSOR or value.grad != YES or not m.grad_on:
        return value
    return _wrapped(value, hook)


def of_function(m: Machine, value: Value, given: list[Memory], name: str, node: ast.AST) -> Value:
    """What a custom Function gives: a view of its input, when it returns that or a view of it."""
    if type(value) is not Memory or value.kind != TENSOR or value.grad != YES or not m.grad_on:
        return value
    memory: Memory | None = value
    while memory is not None and memory not in given:
        memory = memory.base
    if memory is None or not value.exact:
        return value
    return _wrapped(value, m.moment(Kind.VIEWED, name, node, note=CUSTOM))


def _wrapped(value: Memory, moment: Moment) -> Memory:
    """The same tensor, through a custom Function."""
    view = Memory(TENSOR, value.storages, YES, (value,))
    view.base, view.exact, view.dtype, view.trail = value, value.exact, value.dtype, (*value.trail, moment)
    return view
