"""The walk over live objects that a snapshot is taken of."""

from __future__ import annotations

import copyreg
import dataclasses
import types
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import torch

from tensafe.copies.snapshots.nodes import (
    ATOM_FAMILIES,
    ATOMS,
    Array,
    Held,
    Node,
    Opaque,
    Plain,
    step,
)
from tensafe.copies.snapshots.randomness import kind_of, stream
from tensafe.errors import TensafeError
from tensafe.memory.from_numpy import is_array
from tensafe.memory.from_torch import PLAIN

_Handler = Callable[["Look", Any, str], Node]
_PLAIN = frozenset(PLAIN)
_FEW = 4
_INTERNAL = frozenset(vars(torch.nn.Module())) - {"training"}
_NEVER_IN = {torch.amp.GradScaler: {"_per_optimizer_states"}}  # keyed by `id`, and empty after `update()`


class Look:
    """What was met: nodes, the tensors by number, and the containers and streams that must be asked again."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self.shapes: list[torch.Size] = []  # of the tensors when they were copied
        self.dtypes: list[torch.dtype] = []
        self.standing: Any = None  # what `staying` compares with
        self.held: list[Held] = []  # in the order of meeting
        self.restless: list[Any] = []  # sources of random numbers, arrays, and objects with a state_dict
        self._numbers: dict[int, int] = {}
        self._nodes: dict[int, Node] = {}
        self._alive: list[Any] = []  # so that no `id` is met twice

    def root(self, one: Any, name: str) -> Node:
        """The node of an object that was handed to `snapshot`."""
        node = self.node(one, name)
        if not isinstance(node, Opaque):
            return node
        if callable(getattr(one, "state_dict", None)) and callable(getattr(one, "load_state_dict", None)):
            return _foreign(self, one, name)
        if isinstance(one, (type, types.ModuleType, types.FunctionType)) or not attributes(one):
            raise TensafeError(
                f"{name} is a {type(one).__name__}, in which there is nothing to take a snapshot of: "
                "give a module, an optimizer, a tree of tensors, or tensafe.rng"
            )
        return _object(self, one, name)

    def node(self, one: Any, path: str) -> Node:
        """The node of anything."""
        kind = type(one)
        if kind in PLAIN:
            return self.number(one)
        if kind in ATOMS:
            return Plain(one)
        known = self._nodes.get(id(one))
        if known is not None:
            return known
        return (_HANDLERS.get(kind) or _handler(kind, one))(self, one, path)

    def number(self, tensor: torch.Tensor) -> int:
        """The number of a tensor that is plain memory, or that is copied by a method of its own."""
        number = self._numbers.setdefault(id(tensor), len(self.tensors))
        if number == len(self.tensors):
            self.tensors.append(tensor)
        return number

    def enter(self, one: Any, node: Node) -> None:
        """Know a node before its children are looked at, for cycles."""
        self._nodes[id(one)] = node
        self._alive.append(one)
        if isinstance(node, Held):
            self.held.append(node)

    def fill(self, node: Held, values: list[Any], path: str) -> Held:
        """Look at the children of a container."""
        node.seen = values
        if len(values) > _FEW and set(map(type, values)) <= _PLAIN and self._number_all(node, values):
            return node
        number, children = self.number, node.children
        for key, value in zip(node.keys, values, strict=True):
            kind = type(value)
            if kind in PLAIN:
                children.append(number(value))
            elif kind in ATOMS:
                children.append(Plain(value))
            else:
                children.append(self.node(value, path + step(node, key)))
        return node

    def _number_all(self, node: Held, values: list[Any]) -> bool:
        """Number many tensors at once; False where some of them were met before."""
        first = len(self.tensors)
        children = list(range(first, first + len(values)))
        numbers = dict(zip(map(id, values), children))  # noqa: B905 (as many, and `strict` costs)
        if len(numbers) != len(values) or not self._numbers.keys().isdisjoint(numbers):
            return False
        self._numbers.update(numbers)
        self.tensors += values
        node.children = children  # type: ignore[assignment]
        return True


def attributes(one: Any) -> dict[str, Any]:
    """An object's own `__dict__` and slots."""
    names = getattr(one, "__dict__", {})
    slots = copyreg._slotnames(type(one))  # type: ignore[attr-defined]
    if not slots:
        return dict(names)
    return {**names, **{slot: getattr(one, slot) for slot in slots if hasattr(one, slot)}}


def module_attributes(module: torch.nn.Module) -> dict[str, Any]:
    """What a module's author put on it, apart from parameters, buffers and modules; `training` too."""
    return {name: value for name, value in vars(module).items() if name not in _INTERNAL}


def _dictionary(look: Look, one: Any, path: str) -> Node:
    node = Held("dict", one, list(one))
    look.enter(one, node)
    return look.fill(node, list(one.values()), path)


def _sequence(look: Look, one: Any, path: str) -> Node:
    node = Held("list", one, list(range(len(one))))
    look.enter(one, node)
    return look.fill(node, list(one), path)


def _tuple(look: Look, one: Any, path: str) -> Node:
    node = Held("tuple", one, list(range(len(one))), getattr(type(one), "_fields", None))
    look.enter(one, node)
    return look.fill(node, list(one), path)


def _set(look: Look, one: Any, path: str) -> Node:
    if not all(type(item) in ATOMS for item in one):
        return Opaque(one)
    items = list(one)
    node = Held("set", one, items)
    look.enter(one, node)
    return look.fill(node, items, path)


def _module(look: Look, one: Any, path: str) -> Node:
    if isinstance(one, torch.jit.ScriptModule):
        raise TensafeError(f"{path} is a TorchScript module: take its state_dict() instead")
    node = Held("module", one, ["parameters", "buffers", "attributes", "modules"])
    look.enter(one, node)
    for kind, held in (("parameters", one._parameters), ("buffers", one._buffers)):
        node.children.append(_members(look, kind, held, path))
    own = module_attributes(one)
    inner = Held("attributes", one, list(own), "module")
    inner.size = len(vars(one))
    look.held.append(inner)
    node.children.append(look.fill(inner, list(own.values()), path))
    node.children.append(_members(look, "modules", one._modules, path))
    node.detail = sorted(getattr(one, "_non_persistent_buffers_set", ()))
    return node


def _members(look: Look, kind: str, held: dict[str, Any], path: str) -> Held:
    node = Held(kind, held, list(held))
    look.held.append(node)
    return look.fill(node, list(held.values()), path)


def _optimizer(look: Look, one: Any, path: str) -> Node:
    node = Held("optimizer", one, ["param_groups", "state"])
    look.enter(one, node)
    groups = Held("list", one.param_groups, list(range(len(one.param_groups))), "groups")
    look.held.append(groups)
    groups.seen = list(one.param_groups)
    groups.children = [_group(look, group, path) for group in one.param_groups]
    parameters = [parameter for group in one.param_groups for parameter in group["params"]]
    node.children = [groups, _state(look, one, parameters, path)]
    return node


def _group(look: Look, group: dict[str, Any], path: str) -> Held:
    node = Held("group", group, [key for key in group if key != "params"], len(group["params"]))
    look.held.append(node)
    return look.fill(node, [group[key] for key in node.keys], f"{path}.param_groups")


def _state(look: Look, optimizer: Any, parameters: list[torch.Tensor], path: str) -> Held:
    """What an optimizer knows of each parameter, by the parameter's position in its groups."""
    positions = {id(parameter): position for position, parameter in enumerate(parameters)}
    live = optimizer.state
    keys = [positions.get(id(key), key) if isinstance(key, torch.Tensor) else str(key) for key in live]
    if any(isinstance(key, torch.Tensor) for key in keys):
        raise TensafeError(f"{path}.state knows a tensor that is in no group of {path}.param_groups")
    node = Held("state", live, keys, {"parameters": parameters, "keys": list(live)})
    look.held.append(node)
    return look.fill(node, list(live.values()), f"{path}.state")


def _object(look: Look, one: Any, path: str) -> Node:
    skipped = next((names for kind, names in _NEVER_IN.items() if isinstance(one, kind)), frozenset[str]())
    own = {name: value for name, value in attributes(one).items() if name not in skipped}
    if isinstance(one, torch.optim.lr_scheduler.LRScheduler):  # its optimizer is for the caller to name
        own = {name: value for name, value in own.items() if not isinstance(value, torch.optim.Optimizer)}
    node = Held("attributes", one, list(own), _class_name(one))
    node.size = len(attributes(one))
    look.enter(one, node)
    return look.fill(node, list(own.values()), path)


def _class_name(one: Any) -> str:
    return f"{type(one).__module__}.{type(one).__qualname__}"


def _foreign(look: Look, one: Any, path: str) -> Node:
    """An object that says itself what its state is."""
    node = Held("foreign", one, ["state_dict"], _class_name(one))
    look.enter(one, node)
    look.restless.append(node)
    state = one.state_dict()
    look._alive.append(state)
    return look.fill(node, [state], path)


def _array(look: Look, one: Any, path: str) -> Node:
    node = Array(one)
    look.enter(one, node)
    look.restless.append(node)
    return node


def _stream(look: Look, one: Any, path: str) -> Node:
    node = stream(str(kind_of(one)), one)
    look.enter(one, node)
    look.restless.append(node)
    return node


def _opaque(look: Look, one: Any, path: str) -> Node:
    return Opaque(one)


def _plain(look: Look, one: Any, path: str) -> Node:
    return Plain(one)


def _tensor(look: Look, one: Any, path: str) -> Node:
    if torch.nn.parameter.is_lazy(one):
        raise TensafeError(f"{path} is not initialised yet: call the module's forward first")
    if hasattr(type(one), "__tensor_flatten__"):
        return _wrapper(look, one, path)
    return look.number(one)


def _wrapper(look: Look, one: Any, path: str) -> Node:
    """A subclass made of other tensors: a DTensor's local shard, the parts of others."""
    names, _ = one.__tensor_flatten__()
    node = Held("wrapper", one, [*names, *(["grad"] if one.is_leaf else [])], tuple(one.shape))
    look.enter(one, node)
    return look.fill(node, [getattr(one, name) for name in node.keys], path)


_HANDLERS: dict[type, _Handler] = {dict: _dictionary, list: _sequence, tuple: _tuple, set: _set}
_FAMILIES: list[tuple[Any, _Handler]] = [
    (torch.Tensor, _tensor),
    (torch.nn.Module, _module),
    (torch.optim.Optimizer, _optimizer),
    ((torch.optim.lr_scheduler.LRScheduler, torch.amp.GradScaler), _object),
    (ATOM_FAMILIES, _plain),
    (dict, _dictionary),
    ((list, deque), _sequence),
    (tuple, _tuple),
    (set, _set),
    (frozenset, _opaque),
    ((type, types.FunctionType, types.ModuleType, types.MappingProxyType, Mapping), _opaque),
]


def _handler(kind: type, one: Any) -> _Handler:
    """How objects of a class are looked at; learnt once."""
    found = _find_handler(one)
    _HANDLERS[kind] = found
    return found


def _find_handler(one: Any) -> _Handler:
    for family, handler in _FAMILIES:
        if isinstance(one, family):
            return handler
    if is_array(one):
        return _array
    if kind_of(one) is not None:
        return _stream
    if dataclasses.is_dataclass(one):
        return _object
    generic = getattr(type(one), "__module__", "") == "numpy" and hasattr(one, "item")
    return _plain if generic else _opaque
