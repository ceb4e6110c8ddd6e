"""Walks over the autograd graph: its leaves and its nodes, in bounded work."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import torch

MOST_NODES = 20_000


def nodes(roots: Iterable[Any]) -> Iterator[Any]:
    """The graph nodes reachable from these, each once, at most `MOST_NODES`."""
    pending = [root for root in roots if root is not None]
    seen = set(pending)
    for _ in range(MOST_NODES):
        if not pending:
            return
        node = pending.pop()
        yield node
        for following, _index in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                pending.append(following)


def leaves(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """The leaves that require grad and that these tensors are computed from."""
    found: dict[int, torch.Tensor] = {}
    roots = []
    for tensor in tensors:
        if tensor.grad_fn is not None:
            roots.append(tensor.grad_fn)
        elif tensor.requires_grad:
            found[id(tensor)] = tensor
    for node in nodes(roots):
        variable = getattr(node, "variable", None)
        if variable is not None and not node.next_functions:
            found[id(variable)] = variable
    return list(found.values())


def parameters_behind(function: Any) -> list[torch.Tensor]:
    """The trainable parameters of the module that a callable is, is bound to, or closes over."""
    holders = [function, getattr(function, "__self__", None)]
    if isinstance(function, functools.partial):
        return parameters_behind(function.func)
    holders += [
        cell.cell_contents for cell in getattr(function, "__closure__", None) or () if cell.cell_contents
    ]
    modules = (item for item in holders if isinstance(item, torch.nn.Module))
    return [parameter for module in modules for parameter in module.parameters() if parameter.requires_grad]
