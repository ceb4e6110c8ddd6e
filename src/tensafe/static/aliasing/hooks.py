"""Forward hooks that keep a layer's output without a copy, which an in-place layer then overwrites."""

from __future__ import annotations

import ast

from tensafe.facts import Kind
from tensafe.facts import Value as Fact
from tensafe.static.aliasing.books import Kept
from tensafe.static.aliasing.layers import container_of, made_inplace
from tensafe.static.aliasing.writing import Writing, moment_in
from tensafe.static.arguments import Arguments
from tensafe.static.hazards import memories
from tensafe.static.machine import Machine
from tensafe.static.values import Constant, Frame, Function, Layer, Value
from tensafe.syntax.chains import alias_of
from tensafe.syntax.reading import dotted


def registered(m: Machine, module: int, given: Arguments) -> None:
    """`module.register_forward_hook(hook)`."""
    hook = given.get(0, "hook")
    if type(hook) is not Function:
        return
    names = [argument.arg for argument in hook.node.args.args]
    output = names[-1] if len(names) > 2 else ""
    body = hook.node.body
    for part in [body] if isinstance(body, ast.expr) else body:
        for node in ast.walk(part):
            kept, value = container_of(node)
            alias = alias_of(value) if value is not None else None
            if kept is not None and alias is not None and dotted(alias[0]) == output:
                label = getattr(hook.node, "name", "<lambda>")
                m.books.hooked[module] = Kept(node, Frame(hook.source, {}, (), label))
                return


def ran(m: Machine, module: int, result: Value) -> None:
    """A hooked module has run: its hook has kept what it returns."""
    kept = m.books.hooked.get(module)
    if kept is not None:
        m.books.hook_kept.update((memory.storages[0], kept) for memory in memories(result, 1))


def overwritten_output(at: Writing) -> bool:
    """What a hook kept is written in place."""
    kept = at.m.books.hook_kept.pop(at.target.storages[0], None)
    if kept is None:
        return False
    if at.m.books.tells((kept.frame.source.path, getattr(kept.node, "lineno", 0))):
        written = moment_in(at.m, at.frame, Kind.WRITTEN, at.op, at.node)
        values = {"alias": Fact(frozenset(), (*made_inplace(at), written))}
        at.m.put(Kind.WRITTEN, at.op, kept.node, kept.frame, values, note="hook")
    return True


def submodule(owner: Layer, given: Arguments) -> Value | None:
    """`model.get_submodule("0")`."""
    name = given.get(0, "target")
    if type(name) is Constant and isinstance(name.value, str) and name.value.isdigit():
        place = int(name.value)
        return owner.children[place] if place < len(owner.children) else None
    return None
