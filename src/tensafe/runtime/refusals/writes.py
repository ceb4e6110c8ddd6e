"""Writes that PyTorch refuses: into a leaf, into a view that autograd forbids, into memory that overlaps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from tensafe.facts import Kind, Memory, Moment, Site
from tensafe.runtime.places import names
from tensafe.runtime.places.frames import INTERNAL, Place, site_of
from tensafe.runtime.places.source import expressions_at
from tensafe.runtime.refusals.frames import ABSENT, Trace, spelled, statement_at, tensors_named, written
from tensafe.runtime.refusals.origins import Put, attribute, binding, own_files, returns, site_in
from tensafe.runtime.refusals.refusal import Refusal, Seen, made, value_of
from tensafe.runtime.refusals.views import FUNCTIONS_THAT_EXPAND, MAKERS, Sort, made_at, viewed
from tensafe.runtime.storages.ledger import write_moment
from tensafe.runtime.storages.pictures import Drawn, memory_of

MAKER = re.compile(r"Output \d+ of (\w+) is a view")
NAMED = re.compile(r'named "([^"]+)"')
BASE_CHANGED = "base or another view of its base has been modified"


class Write:
    """What was to be written, by which operation, and where the program stood."""

    def __init__(self, trace: Trace) -> None:
        variables = trace.wrapper()
        self.trace = trace
        self.step = trace.step()
        self.place: Place | None = self.step.place if self.step else None
        self.node = written(self.place)
        target = _target(variables)
        self.tensor = self._named_target() if target is None else target
        if not self._is_target(self.node):
            self.node = next((node for node in _arguments(self.place) if self._is_target(node)), None)
        self.argument = _argument(variables)
        self.op = _operation(variables, self.place)

    def value(self, node: ast.expr | None) -> Any:
        """What an expression of the raising frame holds."""
        return self.trace.value(node, self.step) if node is not None and self.step is not None else None

    def _is_target(self, node: ast.expr | None) -> bool:
        """Whether an expression can be the target: one of known value must have that very tensor."""
        value = self.value(node)
        if value is ABSENT or self.tensor is None:
            return not self.trace.over or not isinstance(node, ast.Name)
        return value is self.tensor or isinstance(value, torch.Tensor)

    def _named_target(self) -> torch.Tensor | None:
        value = self.trace.value(self.node, self.step) if self.node and self.step else ABSENT
        return value if isinstance(value, torch.Tensor) else None

    @property
    def label(self) -> str:
        """The target as the source spells it, or as its module calls it."""
        if self.node is not None and spelled(self.node):
            return spelled(self.node)
        label = names.label([self.tensor]) if self.tensor is not None else ""
        return label[1:-1] if label.startswith("`") else ""

    def binding(self) -> Put | None:
        """Where the target's own name was bound, or its attribute set in the program's own class."""
        node = _root(self.node)
        if isinstance(node, ast.Name):
            return binding(self.place, node.id)
        if isinstance(node, ast.Attribute) and self.step is not None:
            owner = self.trace.value(node.value, self.step)
            puts = attribute(owner, node.attr) if owner is not ABSENT else []
            return puts[-1] if puts else None
        return None

    def refusal(self, note: str, trail: Sequence[Moment | None], site: Site | None = None) -> Refusal:
        target = value_of(self.label, [moment for moment in trail if moment is not None])
        return Refusal(note, self.op, site or site_of(self.place), target, memory=self._memory())

    def _memory(self) -> tuple[Memory, ...]:
        """What was to be written, and of what it is a view."""
        base = self.tensor._base if self.tensor is not None else None
        return memory_of(Drawn("to be written", self.tensor, self.label), Drawn("its base", base))


def _calls(place: Place | None) -> list[ast.Call]:
    """The calls at a place, outermost first."""
    nodes = expressions_at(place) if place is not None else []
    return [node for node in nodes if isinstance(node, ast.Call)]


def _arguments(place: Place | None) -> list[ast.expr]:
    for node in _calls(place):
        return [*node.args, *(word.value for word in node.keywords)]
    return []


def _root(node: ast.expr | None) -> ast.expr | None:
    """`x` of `x[0].data`, `self.weight` of `self.weight.view(-1)`."""
    while True:
        if isinstance(node, ast.Subscript) or (
            isinstance(node, ast.Attribute) and node.attr in ("data", "T")
        ):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return node


def _target(variables: Any) -> torch.Tensor | None:
    """What a wrapper of ours was about to write."""
    items = [variables.get("self"), *_flat(variables.get("args", ()))]
    out = variables.get("kwargs", {}).get("out")
    tensors = [item for item in (out, *items) if isinstance(item, torch.Tensor)]
    overlapping = [item for item in tensors if overlaps_itself(item)]
    if variables.get("label", "").startswith("torch._f") and overlapping:
        return overlapping[0]
    return tensors[0] if tensors else None


def _flat(args: Any) -> Iterator[Any]:
    for item in args:
        if isinstance(item, list | tuple):
            yield from item
        else:
            yield item


def _argument(variables: Any) -> torch.Tensor | None:
    args = [item for item in variables.get("args", ()) if isinstance(item, torch.Tensor)]
    return args[-1] if args else None


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether some dimension has stride zero, as after `expand`."""
    if tensor.layout is not torch.strided:
        return False
    return any(not stride and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _operation(variables: Any, place: Place | None) -> str:
    if "cls" in variables:
        return f"{variables['cls'].__name__}.apply"
    label: str = variables.get("label", "")
    statement = statement_at(place) if not label and place is not None else None
    if isinstance(statement, ast.AugAssign):
        return "an augmented assignment"
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return spelled(statement.value.func)
    return label


# --- leaves


def leaf(seen: Seen) -> Refusal:
    """A write into a tensor that the program trains."""
    write = Write(seen.trace)
    note = "leaf" if seen.text.startswith("a leaf") else "view of a leaf"
    return write.refusal(note, [_leaf_made(seen, write)])


def _leaf_made(seen: Seen, write: Write) -> Moment | None:
    """Where the leaf comes from: its name's binding, or that of the caller's name for it."""
    bound = write.binding()
    for step in reversed(seen.trace.passed) if bound is None else ():
        statement = statement_at(step.place) if not INTERNAL[step.filename] else None
        named = tensors_named(seen.trace, step, statement) if statement is not None else []
        names_here = [name for name, tensor in named if tensor is write.tensor and name.isidentifier()]
        bound = next(filter(None, (binding(step.place, name) for name in names_here)), None)
        if bound is not None:
            break
    return made(bound.site) if bound is not None else None


def leaf_as_output(seen: Seen) -> Refusal | None:
    """`out=` with a tensor that the program trains; with any other tensor it is no write to a leaf."""
    write = Write(seen.trace)
    words = [word for node in _calls(write.place) for word in node.keywords if word.arg == "out"]
    out = write.value(words[0].value) if words else None
    if not isinstance(out, torch.Tensor) or not out.is_leaf or not out.requires_grad:
        return None
    write.node, write.tensor = words[0].value, out
    return write.refusal("leaf", [_leaf_made(seen, write)])


# --- views


def one_of_several(seen: Seen) -> Refusal:
    """A write into one of the views that one call returned together."""
    write = Write(seen.trace)
    return _view(seen, write, "one of several views", made_at(_view_of(seen, write), Sort.TOGETHER))


def of_a_function(seen: Seen) -> Refusal:
    """A write into the output of a custom Function, or of a module with a full backward hook."""
    write = Write(seen.trace)
    name = MAKER.search(seen.text)
    if name is not None and name[1].startswith("BackwardHookFunction"):
        hooks = [viewed("Module.register_full_backward_hook", place) for place in seen.hook_places()]
        return write.refusal("view of a hooked module", hooks)
    applied = list(_applied(seen.trace, name[1])) if name is not None else []
    origin = Moment(Kind.VIEWED, f"{name[1]}.apply", applied[0].site, 0) if name and applied else None
    return _view(seen, write, "view of a custom Function", origin)


def without_recording(seen: Seen) -> Refusal:
    """A write into a view that was made under `no_grad` or `inference_mode`."""
    write = Write(seen.trace)
    mode = "inference_mode" if "nference" in seen.text else "no_grad"
    return _view(seen, write, f"view made under {mode}", None)


def detached_in_place(seen: Seen) -> Refusal:
    """`detach_()` on a view."""
    return _view(seen, Write(seen.trace), "view detached in place", None)


def _view(seen: Seen, write: Write, note: str, origin: Moment | None) -> Refusal:
    bound = write.binding() if origin is None else None
    if bound is not None:
        inside = returns(bound.value, seen.trace.files) if isinstance(bound.value, ast.Call) else []
        origin = Moment(Kind.VIEWED, "", (inside[0] if len(inside) == 1 else bound).site, 0)
    changed = None
    if BASE_CHANGED in seen.text:
        view = _view_of(seen, write)
        ledger = seen.ledger(view)
        changed = write_moment(ledger.write, 0, True) if ledger is not None and ledger.write else None
    return write.refusal(note, [origin, changed])


def _view_of(seen: Seen, write: Write) -> torch.Tensor | None:
    """The view meant: the written one, or where its base was written, a view that the raising line names."""
    if BASE_CHANGED not in seen.text or write.step is None or write.place is None:
        return write.tensor
    statement = statement_at(write.place)
    named = tensors_named(seen.trace, write.step, statement) if statement is not None else []
    return next((tensor for _, tensor in named if tensor._is_view()), write.tensor)


def _applied(trace: Trace, function: str) -> Iterator[Put]:
    for filename, syntax in own_files(trace.files):
        for node in syntax.parents:
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(f"{function}.apply"):
                yield Put(filename, node, None)


# --- memory that overlaps


def overlapping(seen: Seen) -> Refusal:
    """A write into memory that holds several elements in one place, or that the same call also reads."""
    write = Write(seen.trace)
    itself = "more than one element of the written-to tensor" in seen.text
    restored = _restored(seen)
    tensor = write.tensor if restored is None else restored
    library = _library_write(seen.trace)
    if library:
        write.op = library
    origin = made_at(tensor, Sort.OVERLAPPING) if itself else None
    trail = [origin or _expanded_in_source(write) if itself else None]
    if library and tensor is not None:
        held = _registered(tensor)
        trail = [origin, *held]
        write.node = None
        write.tensor = tensor
    refusal = write.refusal("overlaps itself" if itself else "overlaps its input", trail)
    return refusal if itself else refusal._replace(operand=_read(write.place))


def _read(place: Place | None) -> Site | None:
    """Where the source of a write stands: the value of an augmented assignment, the argument of a call."""
    statement = statement_at(place) if place is not None else None
    arguments = _arguments(place)
    node = statement.value if isinstance(statement, ast.AugAssign) else next(iter(arguments), None)
    return site_in(place[0].co_filename, node) if place is not None and node is not None else None


def _library_write(trace: Trace) -> str:
    for step in trace.passed:
        name, owner = step.frame.f_code.co_name, trace.owner(step)
        if name == "step" and isinstance(owner, torch.optim.Optimizer):
            return "Optimizer.step"
        if name == "load_state_dict" and isinstance(owner, torch.nn.Module):
            return "Module.load_state_dict"
    return ""


def _restored(seen: Seen) -> torch.Tensor | None:
    """The tensor of a module that `load_state_dict` names in its message."""
    found = NAMED.search(seen.text)
    for step in seen.trace.passed if found is not None else ():
        owner = seen.trace.owner(step) if step.frame.f_code.co_name == "load_state_dict" else None
        if isinstance(owner, torch.nn.Module) and found is not None:
            return dict(names.named_tensors(owner)).get(found[1])
    return None


def _registered(tensor: torch.Tensor) -> list[Moment]:
    """Where a module of the program took this tensor as a parameter or buffer."""
    for module in names._modules():
        for table in ("_parameters", "_buffers"):
            for name, item in vars(module).get(table, {}).items():
                if item is tensor:
                    puts = attribute(module, name)
                    return [Moment(Kind.KEPT, name, puts[-1].site, 0)] if puts else []
    return []


def _expanded_in_source(write: Write) -> Moment | None:
    """A function that expands, found where the target's name is bound."""
    bound = write.binding()
    for node in ast.walk(bound.value) if bound is not None and bound.value is not None else ():
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in FUNCTIONS_THAT_EXPAND or name in MAKERS[Sort.OVERLAPPING]:
                return Moment(Kind.VIEWED, name, bound.site if bound else None, 0)
    return None
