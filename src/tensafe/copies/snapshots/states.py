"""A snapshot as the dictionaries that `state_dict()` gives."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from tensafe.copies.snapshots.nodes import Held, Node, Stream
from tensafe.copies.snapshots.values import Values


def state_of(node: Node, values: Values, name: str) -> Any:
    """A new state of one object: as its own `state_dict()` is made, else a tree like the object."""
    if isinstance(node, Stream):
        return node.state
    if not isinstance(node, Held):
        return values.of(node, name)
    if node.kind == "module":
        found: OrderedDict[str, Any] = OrderedDict()
        _add_module(node, values, "", found)
        return found
    if node.kind == "optimizer":
        return _optimizer(node, values, name)
    if node.kind == "foreign":
        return state_of(node.children[0], values, name)
    if node.kind == "wrapper":
        return {
            str(key): state_of(child, values, name)
            for key, child in zip(node.keys, node.children, strict=True)
        }
    if node.kind in ("dict", "list", "attributes"):
        return _tree(node, values, name)
    return values.of(node, name)


def _tree(node: Held, values: Values, name: str) -> Any:
    """A tree in which modules and optimizers stand as their own states."""
    if all(not isinstance(child, Held) for child in node.children) and node.kind != "attributes":
        return values.of(node, name)
    pairs = zip(node.keys, node.children, strict=True)
    found = {key: state_of(child, values, f"{name}[{key!r}]") for key, child in pairs}
    return list(found.values()) if node.kind == "list" else found


def _add_module(node: Held, values: Values, prefix: str, found: dict[str, Any]) -> None:
    for members in node.children:
        assert isinstance(members, Held)
        for key, child in zip(members.keys, members.children, strict=True):
            if members.kind == "modules" and isinstance(child, Held):
                _add_module(child, values, f"{prefix}{key}.", found)
            elif type(child) is int and members.kind in ("parameters", "buffers") and key not in node.detail:
                found[f"{prefix}{key}"] = values.tensor(child)


def _optimizer(node: Held, values: Values, name: str) -> dict[str, Any]:
    groups, state = node.children
    assert isinstance(groups, Held)
    assert isinstance(state, Held)
    first, packed = 0, []
    for group in groups.children:
        assert isinstance(group, Held)
        numbers = list(range(first, first + group.detail))
        packed.append({**values.of(group, f"{name}.param_groups"), "params": numbers})
        first += group.detail
    pairs = zip(state.keys, state.children, strict=True)
    return {"state": {key: values.of(child, f"{name}.state") for key, child in pairs}, "param_groups": packed}
