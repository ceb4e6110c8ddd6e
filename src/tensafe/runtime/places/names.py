"""The names that the program's modules give to parameters; looked up only when something is reported."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence

import torch

MOST_NAMES = 3


def label(parameters: Sequence[torch.Tensor]) -> str:
    """`policy.0.weight`, `policy.0.bias` and so on, the first few, with the count of the rest."""
    if not parameters:
        return ""
    known = _names(parameters)
    shown = [
        f"`{known[id(p)]}`" if id(p) in known else f"a leaf of shape {list(p.shape)}" for p in parameters
    ]
    rest = len(shown) - MOST_NAMES
    return ", ".join(shown[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def has_trained_sibling(parameters: Sequence[torch.Tensor]) -> bool:
    """Whether a module that holds one of these also holds a parameter with a gradient."""
    wanted = {id(parameter) for parameter in parameters}
    for module in _modules():
        own = [parameter for _, parameter in named_tensors(module)]
        if wanted & {id(parameter) for parameter in own} and any(
            parameter.grad is not None for parameter in own
        ):
            return True
    return False


def named_tensors(module: torch.nn.Module, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and buffers by dotted name, from the modules' own tables: no code of the program runs."""
    own = vars(module)
    for table in ("_parameters", "_buffers"):
        for name, tensor in own.get(table, {}).items():
            if isinstance(tensor, torch.Tensor):
                yield prefix + name, tensor
    for name, child in own.get("_modules", {}).items():
        if child is not None:
            yield from named_tensors(child, f"{prefix}{name}.")


def _names(parameters: Sequence[torch.Tensor]) -> dict[int, str]:
    wanted = {id(parameter) for parameter in parameters}
    best: dict[int, str] = {}
    for module in _modules():
        for name, parameter in named_tensors(module):
            if id(parameter) in wanted and len(name) > len(best.get(id(parameter), "")):
                best[id(parameter)] = name
    return best


def _modules() -> Iterator[torch.nn.Module]:
    for item in gc.get_objects():
        if issubclass(type(item), torch.nn.Module) and "_modules" in vars(item):
            yield item
