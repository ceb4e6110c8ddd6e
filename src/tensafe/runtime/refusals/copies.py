"""A deep copy that PyTorch or Python refuses: what inside the object, and which line put it there."""

from __future__ import annotations

import ast
import itertools
from typing import Any, NamedTuple

import torch

from tensafe.facts import Kind, Moment
from tensafe.runtime.places.frames import INTERNAL, Place, site_of
from tensafe.runtime.places.source import expressions_at
from tensafe.runtime.refusals.frames import Step, spelled
from tensafe.runtime.refusals.holders import latest, names_of
from tensafe.runtime.refusals.origins import Put, attribute, attribute_of_any_name, filled
from tensafe.runtime.refusals.refusal import Refusal, Seen, made_at_place, value_of
from tensafe.runtime.refusals.trail import trail

TABLES = ("_parameters", "_buffers", "_modules")
MOST_LEVELS = 200


class Level(NamedTuple):
    """One step of the way into the copied object: its holder, and the name, index or key there."""

    holder: Any
    name: str
    is_attribute: bool

    @property
    def text(self) -> str:
        if not self.is_attribute:
            return f"[{self.name}]"
        return f"[{self.name}]" if self.name.isdigit() else f".{self.name}"


def nonleaf(seen: Seen) -> Refusal | None:
    """A tensor with a graph somewhere inside the copied object."""
    chain = _chain(seen)
    tensor = _copied_tensor(seen, chain)
    levels = _levels(chain, tensor)
    node = tensor.grad_fn if tensor is not None else None
    was_made = made_at_place(trail.place_behind(node), node.name()) if node is not None else None
    hook, hook_name = _hook(seen, levels)
    put = _kept(seen, levels, was_made) if hook is None else None
    kept = site_of(hook) if hook is not None else (put.site if put is not None else None)
    past = [was_made, Moment(Kind.KEPT, hook_name, kept, 0) if kept is not None else None]
    note = f"graph tensor {'itself' if chain and chain[0] is tensor else 'inside'}"
    if hook is not None:
        note = "graph tensor of a hook"
    return _refusal(seen, note, levels, past)


def uncopyable(seen: Seen) -> Refusal | None:
    """Something else that has no copy: a lock, a generator, an open file."""
    chain = _chain(seen)
    if not chain or not any(_holds_tensors(item) for item in chain):
        return None
    levels = _levels(chain, chain[-1])
    kept = _kept(seen, levels, None)
    past = [Moment(Kind.KEPT, type(chain[-1]).__name__, kept.site, 0) if kept is not None else None]
    if isinstance(seen.error, RecursionError):
        return _refusal(seen, "no copy of recursion", levels[:1], [])
    return _refusal(seen, f"no copy of {type(chain[-1]).__name__}", levels, past)


def _refusal(seen: Seen, note: str, levels: list[Level], past: list[Moment | None]) -> Refusal:
    place = _copying(seen)
    label = _root(place) + "".join(level.text for level in levels)
    return Refusal(note, "copy.deepcopy", site_of(place), value_of(label, [item for item in past if item]))


def _copying(seen: Seen) -> Place | None:
    """The program's own line that copies: the frame above the outermost `deepcopy`."""
    found: Step | None = None
    for step in seen.trace.steps:
        if _is_deepcopy(step):
            break
        if "-packages" not in step.filename and not INTERNAL[step.filename]:
            found = step
    return found.place if found is not None else seen.trace.place(own=True)


def _is_deepcopy(step: Step) -> bool:
    code = step.frame.f_code
    return code.co_name in ("deepcopy", "__deepcopy__") and code.co_filename.endswith(
        ("copy.py", "_tensor.py")
    )


def _root(place: Place | None) -> str:
    """How the source spells the copied object."""
    for node in expressions_at(place) if place is not None else ():
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and ast.unparse(part.func).endswith("deepcopy") and part.args:
                return spelled(part.args[0])
    return ""


def _chain(seen: Seen) -> list[Any]:
    """The objects on the way into the copied one, outermost first, from the frames of `copy.deepcopy`."""
    chain = [seen.trace.variables(step).get("x") for step in seen.trace.torch_steps("copy.py", "deepcopy")]
    return chain[:MOST_LEVELS]


def _copied_tensor(seen: Seen, chain: list[Any]) -> torch.Tensor | None:
    for step in seen.trace.torch_steps("torch/_tensor.py", "__deepcopy__"):
        own = seen.trace.owner(step)
        if isinstance(own, torch.Tensor):
            return own
    return chain[-1] if chain and isinstance(chain[-1], torch.Tensor) else None


def _levels(chain: list[Any], last: Any) -> list[Level]:
    """The names from each object to the next; the dict of an instance is no level of its own."""
    objects = [*chain, last] if last is not None and (not chain or chain[-1] is not last) else chain
    levels: list[Level] = []
    holder: Any = None
    for outer, inner in itertools.pairwise(objects):
        if type(outer) is dict and holder is not None and _is_state(holder, outer):
            found = _named(holder, inner)
        else:
            holder, found = outer, _named(outer, inner)
        if found is not None:
            levels.append(found)
    return levels


def _is_state(holder: Any, state: dict[Any, Any]) -> bool:
    """Whether a dict is the state of an instance, or one of a module's own tables."""
    if type(holder) in (dict, list, tuple):
        return False
    own = getattr(holder, "__dict__", None) or {}
    return any(state is own.get(table) for table in TABLES) or (bool(own) and set(state) <= set(own))


def _named(holder: Any, item: Any) -> Level | None:
    if isinstance(holder, dict):
        return next((Level(holder, repr(key), False) for key, value in holder.items() if value is item), None)
    if isinstance(holder, list | tuple):
        return next((Level(holder, str(i), False) for i, value in enumerate(holder) if value is item), None)
    own = getattr(holder, "__dict__", None) or {}
    for table in (own, *(own.get(name) or {} for name in TABLES)):
        for name, value in table.items():
            if value is item and name not in TABLES:
                return Level(holder, str(name), True)
    return None


def _kept(seen: Seen, levels: list[Level], was_made: Moment | None) -> Put | None:
    """Where the program put the item under the innermost name that the program itself gave."""
    for level in reversed(levels):
        if level.is_attribute:
            puts = attribute(level.holder, level.name, seen.trace.files)
        else:
            puts = filled(names_of(level.holder), seen.trace.files)
        if puts:
            return latest(puts, was_made)
    if any(level.is_attribute for level in levels):
        puts = attribute_of_any_name(seen.trace.files)
        return latest(puts, was_made) if puts else None
    return None


def _hook(seen: Seen, levels: list[Level]) -> tuple[Place | None, str]:
    """Where the hook was put on that computes this attribute, and its class: `WeightNorm`, a pruning."""
    if not levels or not isinstance(levels[-1].holder, torch.nn.Module):
        return None, ""
    module, name = levels[-1].holder, levels[-1].name
    for hook in vars(module).get("_forward_pre_hooks", {}).values():
        if name in (getattr(hook, "name", None), getattr(hook, "_tensor_name", None)):
            return seen.hook_place(hook), type(hook).__name__
    return None, ""


def _holds_tensors(item: Any) -> bool:
    kinds = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)
    if isinstance(item, kinds):
        return True
    values = item.values() if type(item) is dict else item if type(item) in (list, tuple) else ()
    return any(isinstance(value, kinds) for value in values)
