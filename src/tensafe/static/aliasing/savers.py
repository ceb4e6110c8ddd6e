"""Live states that are handed to another thread to be saved, and written before it has saved them."""

from __future__ import annotations

import ast

from tensafe.facts import Kind
from tensafe.facts import Value as Fact
from tensafe.ops import words
from tensafe.static.aliasing.books import Handed
from tensafe.static.arguments import Arguments
from tensafe.static.machine import Machine
from tensafe.static.values import Function, Instance, Layer, Library, Mapping, Memory, Sequence, State, Value
from tensafe.syntax.reading import dotted

METHODS = words("submit apply_async run_in_executor start result join shutdown wait")
_WAITS = words("result join shutdown wait")


def thread(m: Machine, path: str, given: Arguments, made: Value) -> Value:
    """`threading.Thread(target=save, args=(model.state_dict(),))`, not started yet."""
    if path.endswith("Thread"):
        target = given.get(1, "target")
        states = _states([given.keywords.get("args"), given.keywords.get("kwargs"), *_enclosed(target)])
        if states and _saves(target):
            m.books.threads[id(made)] = (made, tuple(states))
    return made


def method(m: Machine, receiver: Value, name: str, given: Arguments, node: ast.Call) -> None:
    """A method of something that may be a pool, a thread or a future."""
    if name in _WAITS:
        settle(m)
    elif name == "run_in_executor" and len(given.positional) > 1:
        method(m, receiver, "submit", Arguments(given.positional[1:]), node)
    elif name in ("submit", "apply_async") and given.positional and _saves(given.positional[0]):
        values = [*given.positional[1:], *given.keywords.values(), *_enclosed(given.positional[0])]
        _hand(m, tuple(_states(values)), node)
    elif name == "start" and id(receiver) in m.books.threads:
        _hand(m, m.books.threads[id(receiver)][1], node)


def _hand(m: Machine, states: tuple[State, ...], node: ast.Call) -> None:
    for state in states:
        handed = m.moment(Kind.SERIALISED, "", node)
        m.books.handed.append(Handed(state, handed, node, m.frame, m.path))


def settle(m: Machine) -> None:
    """Whoever was given something has saved it by now: was it written meanwhile?"""
    waiting, m.books.handed = m.books.handed, []
    for handed in waiting:
        write = m.past.last_write(handed.state.storages, handed.moment, handed.path)
        if write is None or not m.books.tells((handed.frame.source.path, "saving", handed.node.lineno)):
            continue
        values = {"saving": Fact(frozenset(), (write.moment,))}
        m.put(Kind.WRITTEN, "", handed.node, handed.frame, values, note="given")


def _states(values: list[Value | None], depth: int = 3) -> list[State]:
    """The live states among some values, those in containers too."""
    found: list[State] = []
    for value in values:
        if type(value) is State and value.kind in ("state_dict", "optimizer") and value.storages:
            found.append(value)
        elif type(value) is Sequence and depth:
            found += _states([*value.items, value.rest], depth - 1)
        elif type(value) is Mapping and depth:
            found += _states([*value.items.values(), value.rest], depth - 1)
    return found


def _enclosed(callee: Value | None) -> list[Value | None]:
    """What a function inside another reads of the names around it, when it is handed over."""
    if type(callee) is not Function or not callee.closure:
        return []
    bound = {argument.arg for argument in callee.node.args.args}
    names = {node.id for node in ast.walk(callee.node) if isinstance(node, ast.Name)} - bound
    found: list[Value | None] = [
        callee.closure[0][name] for name in sorted(names) if name in callee.closure[0]
    ]
    return found + [
        state for node in ast.walk(callee.node) if (state := _taken_inside(callee, node)) is not None
    ]


def _taken_inside(callee: Function, node: ast.AST) -> State | None:
    """`self.model.state_dict()` in the function itself: taken as late as it is saved."""
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr != "state_dict":
        return None
    owner: Value | None = None
    if isinstance(func.value, ast.Name):
        owner = callee.closure[0].get(func.value.id)
    elif isinstance(func.value, ast.Attribute) and type(callee.receiver) is Instance:
        owner = callee.receiver.attributes.get(func.value.attr)
    if isinstance(owner, Layer | Instance):
        return State("state_dict", owner, (owner.storage,))
    return State("state_dict", owner, owner.storages) if type(owner) is Memory else None


def _saves(callee: Value | None) -> bool:
    """Whether a function writes what it is given to a file."""
    if type(callee) is Library:
        return callee.path.rpartition(".")[2] in ("save", "save_file", "dump")
    if type(callee) is not Function:
        return False
    return any(
        isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("save", "save_file", "dump")
        for node in ast.walk(callee.node)
    )
