"""Views and arrays that PyTorch refuses: `.view()` of a stride that cannot give it, NumPy of a live graph."""

from __future__ import annotations

import ast

import torch

from tensafe.facts import Kind, Moment, Site
from tensafe.runtime.places.frames import Place, site_of
from tensafe.runtime.places.source import expressions_at
from tensafe.runtime.refusals.frames import Step, Trace, spelled, statement_at
from tensafe.runtime.refusals.holders import CONTAINERS, holds, latest, names_of_holders
from tensafe.runtime.refusals.origins import (
    Put,
    binding_before,
    bound_names,
    filled,
    own_files,
    returns,
    scope_of,
    site_in,
    spine,
    statement_of,
    walk_scope,
)
from tensafe.runtime.refusals.refusal import Refusal, Seen, made_at_place, value_of
from tensafe.runtime.refusals.trail import trail
from tensafe.runtime.refusals.views import MAKERS, Sort, made_at
from tensafe.runtime.storages.pictures import Drawn, memory_of

MOST_BINDINGS = 12
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


# --- arrays


def array(seen: Seen) -> Refusal:
    """`numpy()`, called by the program or by a NumPy function, of a tensor that has a graph."""
    step = seen.trace.step(own=True)
    place = step.place if step else None
    tensor = _exported(seen.trace)
    call = _converting_call(seen.trace, step, tensor)
    receiver = _receiver(call, ("numpy", "__array__"))
    past: list[Moment | None] = [_made(tensor)]
    inside = (
        tensor is not None
        and step is not None
        and call is not None
        and _is_inside(seen.trace, step, call, tensor)
    )
    if inside and tensor is not None:
        levels = (filled(names, seen.trace.files) for names in names_of_holders(tensor))
        put = latest(next(filter(None, levels), []), past[0]) or _returned(made_in(tensor))
        past.append(Moment(Kind.KEPT, "", put.site, 0) if put is not None else None)
    note = "array of a list" if inside else "array"
    operand = receiver or _argument(seen.trace, step, call, tensor)
    op = spelled(call.func) if call is not None and receiver is None else "Tensor.numpy"
    target = value_of(spelled(operand), [item for item in past if item])
    return Refusal(note, op or "numpy", site_of(place), target, operand_site(place, operand))


def _exported(trace: Trace) -> torch.Tensor | None:
    own = trace.wrapper().get("self")
    if isinstance(own, torch.Tensor):
        return own
    for step in trace.torch_steps("torch/_tensor.py", "__array__"):
        own = trace.owner(step)
    return own if isinstance(own, torch.Tensor) else None


def made_in(tensor: torch.Tensor | None) -> Place | None:
    """The line that computed a tensor with a graph."""
    return trail.place_behind(tensor.grad_fn) if tensor is not None and tensor.grad_fn is not None else None


def _made(tensor: torch.Tensor | None) -> Moment | None:
    node = tensor.grad_fn if tensor is not None else None
    return made_at_place(made_in(tensor), node.name()) if node is not None else None


def _returned(place: Place | None) -> Put | None:
    """The statement that returns what was made at a place under its own name."""
    statement = statement_at(place) if place is not None else None
    names = bound_names(statement) if statement is not None else set()
    scope = scope_of(place[0].co_filename, statement) if place is not None and statement is not None else None
    for node in walk_scope(scope) if names and scope is not None else ():
        if isinstance(node, ast.Return) and place is not None:
            items = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else [node.value]
            if any(isinstance(item, ast.Name) and item.id in names for item in items):
                return Put(place[0].co_filename, node, node.value)
    return None


def _call_at(place: Place | None) -> ast.Call | None:
    nodes = expressions_at(place) if place is not None else []
    return next((node for node in nodes if isinstance(node, ast.Call)), None)


def _converting_call(trace: Trace, step: Step | None, tensor: torch.Tensor | None) -> ast.Call | None:
    """The call that converts; where a place is a whole line (Python 3.10), the one given the tensor."""
    if step is None:
        return None
    calls = [node for node in expressions_at(step.place) if isinstance(node, ast.Call)]
    for call in calls if len(calls) > 1 else ():
        values = [trace.value(argument, step) for argument in _arguments(call)]
        if _receiver(call, ("numpy",)) is not None or any(holds(value, tensor) for value in values):
            return call
    return calls[0] if calls else None


def _receiver(call: ast.Call | None, methods: tuple[str, ...]) -> ast.expr | None:
    if call is not None and isinstance(call.func, ast.Attribute) and call.func.attr in methods:
        return call.func.value
    return None


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(word.value for word in call.keywords)]


def _is_inside(trace: Trace, step: Step, call: ast.Call, tensor: torch.Tensor) -> bool:
    """Whether an argument of the call is a list, tuple or dict that holds the tensor."""
    for argument in _arguments(call):
        value = trace.value(argument, step)
        if isinstance(value, CONTAINERS) and holds(value, tensor):
            return True
    return False


def _argument(
    trace: Trace, step: Step | None, call: ast.Call | None, tensor: torch.Tensor | None
) -> ast.expr | None:
    """The argument of a NumPy call that is the tensor."""
    for argument in _arguments(call) if call is not None and step is not None else ():
        if step is not None and trace.value(argument, step) is tensor:
            return argument
    return None


# --- views


def stride(seen: Seen) -> Refusal:
    """`view()` where no stride over the same memory gives the shape, or the type."""
    place = seen.trace.place()
    step = seen.trace.step()
    call = _call_at(place)
    receiver = _receiver(call, ("view", "view_as"))
    if call is not None and receiver is None and call.args:
        receiver = call.args[0]
    tensor = seen.trace.wrapper().get("self")
    if not isinstance(tensor, torch.Tensor) and receiver is not None and step is not None:
        tensor = seen.trace.value(receiver, step)
    tensor = tensor if isinstance(tensor, torch.Tensor) else None
    origin = _why_strided(seen.trace, tensor, place, receiver)
    note = "view as type" if "stride" in seen.text and "must be 1" in seen.text else "view as shape"
    if "last dimension" in seen.text:
        note = "view as complex"
    op = (
        f"Tensor.{call.func.attr}"
        if call is not None and isinstance(call.func, ast.Attribute)
        else "Tensor.view"
    )
    target = value_of(spelled(receiver), [origin] if origin is not None else [])
    memory = memory_of(Drawn("to be viewed", tensor, target.label))
    return Refusal(note, op, site_of(place), target, operand_site(place, receiver), memory)


def operand_site(place: Place | None, operand: ast.expr | None) -> Site | None:
    """Where the operand of the refused call stands."""
    return site_in(place[0].co_filename, operand) if place is not None and operand is not None else None


def _why_strided(
    trace: Trace, tensor: torch.Tensor | None, place: Place | None, receiver: ast.expr | None
) -> Moment | None:
    recorded = made_at(tensor, Sort.STRIDED)
    if recorded is not None:
        return recorded
    order = CHANNELS_LAST.get(tensor.dim()) if tensor is not None else None
    if tensor is not None and order is not None and tensor.is_contiguous(memory_format=order):
        return _channels_last(trace)
    return _in_source(trace, place, receiver) or made_at(tensor, Sort.OVERLAPPING)


def _channels_last(trace: Trace) -> Moment | None:
    """The program's own call that asks for this memory format, if there is only one such line."""
    found = [
        Put(filename, node, None)
        for filename, syntax in own_files(trace.files)
        for node in syntax.parents
        if isinstance(node, ast.Call) and any(_is_channels_last(word) for word in node.keywords)
    ]
    sites = {put.site.line: put.site for put in found}
    return Moment(Kind.VIEWED, "channels_last", found[0].site, 0) if len(sites) == 1 else None


def _is_channels_last(word: ast.keyword) -> bool:
    return word.arg == "memory_format" and "channels_last" in ast.unparse(word.value)


def _in_source(trace: Trace, place: Place | None, receiver: ast.expr | None) -> Moment | None:
    """A call that changes the stride: in the receiver itself, or where its names were bound, step by step."""
    statement = statement_at(place) if place is not None else None
    if place is None or receiver is None or statement is None:
        return None
    waiting = [Put(place[0].co_filename, statement, receiver)]
    seen = set()
    for _ in range(MOST_BINDINGS):
        if not waiting:
            return None
        put = waiting.pop(0)
        if id(put.node) in seen or put.value is None:
            continue
        seen.add(id(put.node))
        for part in spine(put.value):
            name = _stride_change(part)
            if name:
                return None if put.node is statement else Moment(Kind.VIEWED, name, put.site, 0)
            if isinstance(part, ast.Call):
                waiting += returns(part, trace.files)
            if isinstance(part, ast.Name):
                bound = binding_before(put.filename, statement_of(put), part.id)
                waiting += [bound] if bound is not None else []
    return None


def _stride_change(part: ast.expr) -> str:
    if isinstance(part, ast.Attribute) and part.attr in MAKERS[Sort.STRIDED]:
        return part.attr
    index = part.slice if isinstance(part, ast.Subscript) else None
    leaves_gaps = isinstance(index, ast.Tuple) or (isinstance(index, ast.Slice) and index.step is not None)
    return "slice" if leaves_gaps else ""
