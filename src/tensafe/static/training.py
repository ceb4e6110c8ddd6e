"""Training idiom: optimizers, backward, `state_dict` and its restoring."""

from __future__ import annotations

import ast
import re

from tensafe.facts import Kind
from tensafe.static import cuts, operations, twins
from tensafe.static.aliasing import ties
from tensafe.static.arguments import Arguments
from tensafe.static.graphs import finished, leaks, never_reached
from tensafe.static.hazards import memories
from tensafe.static.iteration import items_of, of_state
from tensafe.static.machine import Machine
from tensafe.static.past import Write
from tensafe.static.unknowns import storage_of, unknown
from tensafe.static.values import (
    LIKELY,
    NO,
    NOTHING_KNOWN,
    TENSOR,
    THING,
    YES,
    Choice,
    Instance,
    Mapping,
    Memory,
    Optimizer,
    Sequence,
    State,
    Value,
)

# What a thing that came as an argument is called when it is a module, not a scheduler, a sampler or a loader.
_MODULE = re.compile(
    r"(model|module|net|network|policy|actor|critic|generator|discriminator|encoder|decoder|backbone|head|"
    r"student|teacher|learner|embedding|layer|transformer|classifier|resnet|bert|vae|unet|gan)s?_?\d*(\[.*\])?$",
    re.IGNORECASE,
)


def make_optimizer(m: Machine, name: str, given: Arguments) -> Optimizer:
    """`torch.optim.Name(parameters, ...)`."""
    parameters = given.get(0, "params")
    storages = tuple(dict.fromkeys(_storages(parameters))) if parameters is not None else ()
    made = Optimizer(name, storages, m.past.storage(), given.flag("fused") is True)
    made.made = m.past.tick()
    m.past.trained.update(storages)
    return made


def _storages(value: Value, depth: int = 4) -> list[int]:
    """The storages of what an optimizer is given."""
    if type(value) is State or type(value) is Memory:
        return list(value.storages)
    if depth == 0:
        return []
    inner: list[Value] = []
    if type(value) is Sequence:
        inner = [*value.items, *([value.rest] if value.rest else [])]
    elif type(value) is Mapping:
        inner = [*value.items.values(), *([value.rest] if value.rest else [])]
    elif type(value) is Choice:
        inner = list(value.options)
    return [storage for item in inner for storage in _storages(item, depth - 1)]


def of_module(m: Machine, module: Value, name: str, given: Arguments, node: ast.Call) -> Value:
    """`parameters`, `named_parameters`, `state_dict` and `load_state_dict` of a module."""
    storages = storage_of(module)
    if type(module) is Instance and module.cls.kind != "module":
        return unknown(m, given, name, module)
    if name in ("parameters", "named_parameters") or _is_named_as_module(node):
        m.past.modules.update(storages)
    if name == "load_state_dict":
        if given.positional:
            restore(m, module, given.positional[0], node)
            if given.flag("assign", 2) is True:
                ties.assigned(m, module, node)
        return NOTHING_KNOWN
    if type(module) is Memory and not module.exact:
        return State(name, module, storages)
    if name == "state_dict":
        return State(name, module, storages, (m.moment(Kind.KEPT, "Module.state_dict", node),))
    return State(name, module, storages)


def _is_named_as_module(node: ast.Call) -> bool:
    func = node.func
    text = ast.unparse(func.value) if isinstance(func, ast.Attribute) else ""
    return _MODULE.search(text) is not None


def restore(m: Machine, target: Value, value: Value, node: ast.Call) -> None:
    """`target.load_state_dict(value)`."""
    storages = storage_of(target)
    if type(value) is State:
        twins.loaded(m, target, value.owner, node)
        ties.loaded(m, target, value, node)
    own = False
    for kept in _kept(value):
        write = m.past.last_write(kept.storages, kept.trail[-1], m.path)
        if not _overlap(m, storages, kept.storages):
            continue
        own = True
        if write is not None:
            m.ask_kept(Kind.RESTORED, node, kept, write.moment, "Module.load_state_dict")
    if own:
        return  # each parameter is given the values that it has
    written = m.fresh(TENSOR)
    written.storages = storages
    grad_on, m.grad_on = m.grad_on, False
    operations.write(m, written, "Module.load_state_dict", node)
    m.grad_on = grad_on


def _overlap(m: Machine, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return any(m.past.is_within(a, b) or m.past.is_within(b, a) for a in one for b in other)


def _kept(value: Value) -> list[State | Memory]:
    """The live references in what is restored."""
    if type(value) is State:
        return [value] if value.trail else []
    if type(value) is Choice:
        return [kept for option in value.options for kept in _kept(option)]
    found: list[State | Memory] = []
    found += [one for one in memories(value) if one.exact and one.trail and one.trail[-1].kind is Kind.KEPT]
    return found[:1]


def call_state(m: Machine, state: State, name: str, given: Arguments, node: ast.Call) -> Value:
    """A method of a live state: its parts stay live."""
    if name in ("items", "values"):
        value = of_state(m, state, "any")
        return Sequence([], Sequence([NOTHING_KNOWN, value], None, "tuple") if name == "items" else value)
    if name in ("copy", "state_dict"):
        return state
    if name in ("update", "setdefault", "pop", "popitem", "clear", "__setitem__", "__ior__"):
        state.trail = ()  # what is loaded back is no longer what lives in the module
    if name in ("get", "pop", "setdefault", "__getitem__"):
        return of_state(m, state, "any")
    if state.kind == "module":
        return of_module(m, state.owner, name, given, node) if name != "state_dict" else state
    return NOTHING_KNOWN


def call_optimizer(m: Machine, optimizer: Optimizer, name: str, given: Arguments, node: ast.Call) -> Value:
    """`step`, `state_dict`, `load_state_dict` and `add_param_group` of an optimizer."""
    if name == "step":
        losses = m.backwards[min(optimizer.seen, len(m.backwards)) :]
        cuts.stepped(m, optimizer, node)
        moment = m.hazards.step(optimizer, node)
        for kept in optimizer.borrowers:
            borrowed = State("optimizer", optimizer, (optimizer.storage,), (kept,))
            m.ask_kept(Kind.STEPPED, node, borrowed, moment, f"{optimizer.name}.step")
        twins.stepped(m, optimizer, node, moment)
        ties.stepped(m, optimizer, node, losses)
        leaks.stepped(m, optimizer)
        never_reached.stepped(m, optimizer)
    elif name == "zero_grad":
        leaks.zeroed(m, optimizer.storages)
    elif name == "state_dict":
        kept = m.moment(Kind.KEPT, "Optimizer.state_dict", node)
        stepped = optimizer.storage in m.past.writes or optimizer.made < m.started
        return State("optimizer", optimizer, (optimizer.storage,), (kept,) if stepped else ())
    elif name == "load_state_dict" and given.positional:
        _load_optimizer(m, optimizer, given.positional[0], node)
    elif name == "add_param_group" and given.positional:
        optimizer.storages = (*optimizer.storages, *_storages(given.positional[0]))
        ties.group_added(m, optimizer)
    return NOTHING_KNOWN


def _load_optimizer(m: Machine, optimizer: Optimizer, value: Value, node: ast.Call) -> None:
    if type(value) is not State or type(value.owner) is not Optimizer or not value.trail:
        return  # nothing live in it: before its first step an optimizer has no state
    source = value.owner
    if source is not optimizer:
        source.borrowers.append(value.trail[-1])
        return
    write = m.past.last_write(value.storages, value.trail[-1], m.path)
    if write is not None:
        m.ask_kept(Kind.RESTORED, node, value, write.moment, "Optimizer.load_state_dict")


def unknown_step(m: Machine, receiver: Memory, node: ast.Call) -> None:
    """`optimizer.step()` of an optimizer that came as an argument: it steps something."""
    func = node.func
    name = ast.unparse(func.value).lower() if isinstance(func, ast.Attribute) else ""
    if "optim" in name or name.rpartition(".")[2].startswith("opt"):
        moment = m.moment(Kind.WRITTEN, "Optimizer.step", node)
        m.past.anonymous_steps.append(Write(moment, m.path))
        m.sent.clear()


def backward(m: Machine, loss: Value, given: Arguments, node: ast.Call) -> None:
    """`loss.backward()`."""
    arguments = [value for value in given.positional if type(value) is Memory]
    losses = memories(loss)
    if losses and losses[0].kind == THING and arguments and losses[0].grad < LIKELY:
        losses = arguments
    keeps = given.flag("retain_graph") is True or given.flag("create_graph") is True
    finished.is_loss(losses, node)
    for one in losses:
        m.hazards.used(one, node, backward=True)
        cuts.backward(m, one, node)
        finished.backward(m, one, given, node)
        leaks.backward(m, one, node, keeps)
        m.backwards.append(one)
        if not keeps:
            m.past.forget_saves(one)


def autograd_grad(m: Machine, given: Arguments, node: ast.Call) -> Value:
    """`torch.autograd.grad(outputs, inputs)`."""
    outputs, inputs = given.get(0, "outputs"), given.get(1, "inputs")
    keeps = given.flag("create_graph") is True
    for one in memories(outputs) if outputs is not None else []:
        m.hazards.used(one, node, backward=True)
        cuts.used(m, one)
        if not keeps and given.flag("retain_graph") is not True:
            m.past.forget_saves(one)
    parents = tuple(memories(outputs))[:4] if outputs is not None else ()
    gradient = m.fresh(TENSOR, YES if keeps else NO, parents if keeps else ())
    if keeps:
        cuts.watch_gradients(m, gradient, node)
    items = items_of(m, inputs) if inputs is not None else None
    if items is not None and len(items) <= 3:
        return Sequence([gradient for _ in items], None, "tuple")
    return Sequence([gradient], gradient, "tuple")
