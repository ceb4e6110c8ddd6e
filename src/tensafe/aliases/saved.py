"""Which nodes of live graphs keep a tensor for backward, read without version checks and without hooks."""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any

import torch

from tensafe.aliases.attributes import attributes_of, is_kind, module_of, mro_of, namespace_of
from tensafe.aliases.autograd import node_name, root_of
from tensafe.aliases.contents import is_tensor_type
from tensafe.aliases.walk import Walk

MOST_NODES = 100_000
MOST_PACKED = 200
RAW = "_raw_saved_"
_names: dict[int, tuple[type, tuple[str, ...]]] = {}  # by `id`: hashing a type may run its metaclass

Before = dict[Any, tuple[Any, str]]
"""By node: the node that led to it, or the name of a tensor."""


@dataclass(eq=False)
class SavedTensor:
    """A tensor that a node keeps; `path` leads to the node from a live tensor."""

    tensor: torch.Tensor
    node: Any
    argument: str
    path: tuple[str, ...]
    checked: bool  # whether backward compares its version: not behind hooks, not for attributes of `ctx`


def saved_tensors(roots: Iterable[tuple[str, torch.Tensor]], not_seen: list[str]) -> Iterator[SavedTensor]:
    """All saved tensors of the graphs behind these tensors, each node once.

    Nodes behind tensors with names come first, the nearest first: a path then begins with a name.
    """
    before: Before = {}
    listed = list(roots)
    for group in ([one for one in listed if one[0]], [one for one in listed if not one[0]]):
        yield from _saved_behind(group, before, not_seen)


def _saved_behind(
    roots: Iterable[tuple[str, torch.Tensor]], before: Before, not_seen: list[str]
) -> Iterator[SavedTensor]:
    queue: collections.deque[Any] = collections.deque()
    for name, tensor in roots:
        node = _grad_fn(tensor)
        if node is not None and node not in before:
            before[node] = (None, name)
            queue.append(node)
    while queue:
        node = queue.popleft()
        for argument, tensor, checked in _saved_of(node, not_seen):
            yield SavedTensor(tensor, node, argument, _path(node, before), checked)
        for following, _ in node.next_functions:
            if following is not None and following not in before:
                before[following] = (node, "")
                queue.append(following)
        if len(before) > MOST_NODES:
            note = f"graphs of more than {MOST_NODES:,} nodes: the nearest were looked at"
            not_seen += [note] if note not in not_seen else []
            return


def _path(node: Any, before: Before) -> tuple[str, ...]:
    names: collections.deque[str] = collections.deque()
    while node is not None:
        names.appendleft(node_name(node))
        node, root = before[node]
        if node is None:
            names.appendleft(root)
    return tuple(names)


def _grad_fn(tensor: object) -> Any:
    own: Any = torch.Tensor
    with torch._C.DisableTorchFunctionSubclass():
        try:
            return own.grad_fn.__get__(tensor)
        except RuntimeError:  # a view that autograd no longer accepts
            return None


def has_graph(value: object) -> bool:
    """Whether a graph hangs from it: a tensor that is no leaf."""
    return is_tensor_type(type(value)) and _grad_fn(value) is not None


def is_computed(tensor: torch.Tensor) -> bool:
    """Whether its values come from other tensors: it has a graph, and is no view of a leaf."""
    own: Any = torch.Tensor
    root = root_of(tensor)
    with torch._C.DisableTorchFunctionSubclass():
        return has_graph(tensor) and not (root is not tensor and own.grad_fn.__get__(root) is None)


def _saved_of(node: Any, not_seen: list[str]) -> Iterator[tuple[str, torch.Tensor, bool]]:
    for name in _raw_names(type(node)):
        argument = name.removeprefix(RAW)
        try:
            raw = getattr(node, name)
        except RuntimeError:  # freed by a backward that has run
            continue
        for one in raw if isinstance(raw, tuple | list) else [raw]:
            for tensor, checked in _unpacked(node, argument, one, not_seen):
                yield argument, tensor, checked
    if is_kind(type(node), torch.autograd.function.BackwardCFunction):
        yield from _kept_on(node)
        if "run_function" in attributes_of(node):  # a checkpoint with `use_reentrant=True`
            _say_recomputed(not_seen)


def _raw_names(kind: type) -> tuple[str, ...]:
    known = _names.get(id(kind))
    if known is None:
        names = {name for place in mro_of(kind) for name in namespace_of(place) if name.startswith(RAW)}
        known = _names[id(kind)] = (kind, tuple(sorted(names)))
    return known[1]


def _kept_on(node: Any) -> Iterator[tuple[str, torch.Tensor, bool]]:
    """Tensors that a custom Function put on its `ctx` as attributes: backward uses them unchecked."""
    walk = Walk(MOST_PACKED).go((f"ctx.{name}", value) for name, value in attributes_of(node).items())
    for found in walk.found.values():
        if is_tensor_type(type(found.value)):
            yield walk.names(found)[0], found.value, False


def _unpacked(node: Any, argument: str, raw: Any, not_seen: list[str]) -> Iterator[tuple[torch.Tensor, bool]]:
    if not hasattr(raw, "unpack_hook"):  # torch before it could be asked
        yield from ((tensor, True) for tensor in _by_attribute(node, argument, not_seen))
        return
    data = raw.data
    if raw.unpack_hook is None:
        if is_tensor_type(type(data)):
            yield data, True
        return
    yield from _recomputed_from(raw.unpack_hook, argument, node, not_seen)
    is_ours = module_of(type(data)).startswith("tensafe.")  # the runtime engine compares versions itself
    walk = Walk(MOST_PACKED).go([("packed", data)])
    for found in walk.found.values():
        if is_tensor_type(type(found.value)):
            yield found.value, is_ours


def _recomputed_from(
    hook: Any, argument: str, node: Any, not_seen: list[str]
) -> Iterator[tuple[torch.Tensor, bool]]:
    """The arguments of `checkpoint(…, use_reentrant=False)`, from which backward computes it again."""
    for cell in hook.__closure__ or () if type(hook) is FunctionType else ():
        kind = type(cell.cell_contents)
        if module_of(kind) != "torch.utils.checkpoint":
            continue
        _say_recomputed(not_seen)
        kept = attributes_of(cell.cell_contents).get("saved_args")
        for raw in kept if type(kept) is list else []:
            yield from _unpacked(node, argument, raw, not_seen)


def _say_recomputed(not_seen: list[str]) -> None:
    note = "what a checkpointed function reads besides its arguments: backward reads it again, as it is then"
    if note not in not_seen:
        not_seen.append(note)


def _by_attribute(node: Any, argument: str, not_seen: list[str]) -> list[torch.Tensor]:
    """Through `_saved_…`, which would run unpack hooks: a profile function stops them at their first line."""
    if sys.getprofile() is not None:
        not_seen.append("what graphs save: this torch shows it only while no profiler runs")
        return []
    name = _attribute_of(node, argument)
    sys.setprofile(_refuse_calls)
    try:
        value = getattr(node, name)
    except _HookRefusedError:
        not_seen.append(f"what {node_name(node)} saves through hooks, which this torch would run to show it")
        return []
    except RuntimeError:  # freed, or already modified
        return []
    finally:
        sys.setprofile(None)
    held = value if isinstance(value, tuple | list) else [value]
    return [one for one in held if is_tensor_type(type(one))]


def _attribute_of(node: Any, argument: str) -> str:
    custom = is_kind(type(node), torch.autograd.function.BackwardCFunction)
    return "saved_tensors" if custom else f"_saved_{argument}"


class _HookRefusedError(Exception):
    """An unpack hook of the program was about to run."""


def _refuse_calls(_frame: FrameType, event: str, _argument: Any) -> None:
    if event == "call":
        raise _HookRefusedError
