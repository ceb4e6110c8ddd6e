"""Custom `torch.autograd.Function`s, and checkpointing."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensafe.facts import Certainty, Kind
from tensafe.ops import words
from tensafe.static import cuts, definitions, operations
from tensafe.static.arguments import Arguments
from tensafe.static.calls import dispatch
from tensafe.static.graphs import refused_writes
from tensafe.static.invocation import invoke
from tensafe.static.machine import Machine
from tensafe.static.unknowns import unknown
from tensafe.static.values import (
    LIKELY,
    NO,
    TENSOR,
    THING,
    Class,
    Cut,
    Function,
    Instance,
    Layer,
    Memory,
    Sequence,
    Value,
)

_CONTEXT = ast.parse("class ctx: pass").body[0]


def call_method(m: Machine, cls: Class, name: str, given: Arguments, node: ast.Call) -> Value:
    """A method that a project class has from its library base."""
    return apply(m, cls, given, node) if name == "apply" else unknown(m, given, name, cls)


def apply(m: Machine, cls: Class, given: Arguments, node: ast.Call) -> Value:
    """`Name.apply(...)`: forward without recording, then what its backward will write."""
    found = definitions.find_method(cls, "forward")
    tensors = [value for value in given.positional if type(value) is Memory]
    if cls.kind != "function" or found is None:
        return unknown(m, given, "apply", cls)
    for tensor in tensors:
        tensor.kind = TENSOR if tensor.kind == THING and tensor.grad >= LIKELY else tensor.kind
    context = Instance(_context_class(m), m.past.storage())
    grads = [(tensor, tensor.grad) for tensor in tensors]
    grad_on, m.grad_on = m.grad_on, False
    legacy = len(found[1].args.args) > 0 and found[1].args.args[0].arg == "ctx"
    first = [context] if legacy else []
    inputs = [*first, *given.positional]
    result = invoke(
        m, Function(found[1], found[0].source, (found[0].scope,), None, found[0]), inputs, {}, node
    )
    m.grad_on = grad_on
    _undeclared(m, found[1], tensors, node)
    output = _output(m, result, grads)
    _backward(m, cls, context, output, node)
    _keep(m, cls, context, output, node)
    if "mark_dirty" not in ast.dump(found[1]):
        return refused_writes.of_function(m, output, tensors, f"{cls.node.name}.apply", node)
    return output


def _context_class(m: Machine) -> Class:
    assert isinstance(_CONTEXT, ast.ClassDef)
    cls = Class(_CONTEXT, m.frame.source, [])
    cls.kind = "context"
    return cls


def _output(m: Machine, result: Value, grads: list[tuple[Memory, int]]) -> Value:
    tensors = tuple(tensor for tensor, _ in grads)
    grad = max((before for _, before in grads), default=NO)
    for one in operations.tensors_of([result]):
        if one in tensors:
            continue
        one.grad = max(one.grad, grad) if m.grad_on else NO
        one.parents = (*one.parents, *tensors)
        one.kind = TENSOR
    return result


def _saved(context: Instance) -> list[Memory]:
    saved = context.attributes.get("saved_tensors")
    return operations.tensors_of([saved]) if saved is not None else []


def _backward(m: Machine, cls: Class, context: Instance, output: Value, node: ast.Call) -> None:
    """What the backward writes into its saved inputs, others may need after it."""
    found = definitions.find_method(cls, "backward")
    if found is None or not _saved(context):
        return
    grad_on, m.grad_on = m.grad_on, False
    incoming = m.fresh(TENSOR)
    function = Function(found[1], found[0].source, (found[0].scope,), None, found[0])
    invoke(m, function, [context, incoming], {}, node)
    m.grad_on = grad_on


def _keep(m: Machine, cls: Class, context: Instance, output: Value, node: ast.Call) -> None:
    outputs = operations.tensors_of([output])
    if outputs and outputs[0].grad >= LIKELY:
        m.hazards.save(f"{cls.node.name}Backward", node, outputs[0], *_saved(context))


def context_call(m: Machine, context: Instance, name: str, given: Arguments) -> Value:
    """`ctx.save_for_backward(...)` and `ctx.mark_dirty(...)`."""
    if name == "save_for_backward":
        context.attributes["saved_tensors"] = Sequence(list(given.positional), None, "tuple")
    return m.thing()


def _undeclared(m: Machine, forward: ast.AST, tensors: list[Memory], node: ast.Call) -> None:
    """Inputs written without `mark_dirty`: a caller that goes on with them goes on with the old history."""
    if not m.statement_is(node) or "mark_dirty" in ast.dump(forward):
        return
    for tensor in tensors:
        others = [one for one in tensors if one is not tensor and one.grad >= LIKELY]
        for write in m.past.writes.get(tensor.storages[0], [])[-1:]:
            if others and write.node is not None and _inside(write.node, forward):
                note = "written without ctx.mark_dirty"
                made = replace(write.moment, kind=Kind.CUT, op="Function.forward", note=note)
                cuts.starved(m, Cut(made, tensor, rebuilt=True), None, m.frame, Certainty.MAY)


def _inside(node: ast.AST, forward: ast.AST) -> bool:
    line = getattr(node, "lineno", 0)
    return getattr(forward, "lineno", 0) <= line <= (getattr(forward, "end_lineno", 0) or 0)


def checkpoint(m: Machine, given: Arguments, node: ast.Call) -> Value:
    """`checkpoint(function, *inputs, use_reentrant=...)`."""
    if not given.positional:
        return unknown(m, given, "checkpoint")
    function, *inputs = given.positional
    keywords = {name: value for name, value in given.keywords.items() if name not in _OPTIONS}
    result = dispatch(m, function, Arguments(inputs, keywords, given.rest), node)
    if given.flag("use_reentrant") is True and m.grad_on and isinstance(function, Layer | Instance):
        _reentrant(m, operations.tensors_of(inputs), result, node)
    return result


def _reentrant(m: Machine, inputs: list[Memory], result: Value, node: ast.Call) -> None:
    """Reentrant checkpointing records nothing when no input requires a gradient."""
    if not inputs or not all(tensor.kind == TENSOR and tensor.grad == NO for tensor in inputs):
        return
    op, note = "torch.utils.checkpoint.checkpoint", "no input requires a gradient"
    moment = m.moment(Kind.CUT, op, node, note=note)
    for one in operations.tensors_of([result]):
        one.cuts = (Cut(moment, one, rebuilt=True), *one.cuts)[:4]
        _cut_off(m, one)


def _cut_off(m: Machine, result: Memory) -> None:
    """The result has no history; its source keeps standing for the parameters behind it."""
    source = Memory(result.kind, result.storages, result.grad, result.parents)
    result.cuts[0].source = source
    result.grad, result.parents = NO, ()


_OPTIONS = words("use_reentrant preserve_rng_state context_fn determinism_check debug")
