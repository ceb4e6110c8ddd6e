"""How Python spells each aten operation: methods, functions of torch's modules, operators, properties."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F

from tensafe.ops.from_torch.formulas import formulas

HOMES: dict[str, tuple[Any, str]] = {
    "linalg_": (torch.linalg, "torch.linalg"),
    "fft_": (torch.fft, "torch.fft"),
}
HOMES["special_"] = (torch.special, "torch.special")
HOMES["sparse_"] = (torch.sparse, "torch.sparse")
HOMES["_sparse_"] = (torch.sparse, "torch.sparse")

# Functions of torch.nn.functional that have another name than the operation they run.
RENAMED = {
    "unfold": "im2col",
    "fold": "col2im",
    "cross_entropy": "cross_entropy_loss",
    "logsigmoid": "log_sigmoid",
    "grid_sample": "grid_sampler",
    "adaptive_max_pool1d_with_indices": "adaptive_max_pool1d",
    "adaptive_max_pool2d_with_indices": "adaptive_max_pool2d",
    "adaptive_max_pool3d_with_indices": "adaptive_max_pool3d",
    "fractional_max_pool2d_with_indices": "fractional_max_pool2d",
    "fractional_max_pool3d_with_indices": "fractional_max_pool3d",
    "affine_grid": "affine_grid_generator",
}

OPERATORS = {
    "add": ("x + y",),
    "sub": ("x - y",),
    "rsub": ("2 - x",),
    "mul": ("x * y",),
    "div": ("x / y",),
    "floor_divide": ("x // y",),
    "remainder": ("x % y",),
    "pow": ("x ** y",),
    "matmul": ("x @ y",),
    "neg": ("-x",),
    "positive": ("+x",),
    "abs": ("abs(x)",),
    "bitwise_not": ("~x",),
    "__and__": ("x & y",),
    "__or__": ("x | y",),
    "__xor__": ("x ^ y",),
    "__lshift__": ("x << y",),
    "__rshift__": ("x >> y",),
    "add_": ("x += y",),
    "sub_": ("x -= y",),
    "mul_": ("x *= y",),
    "div_": ("x /= y",),
    "floor_divide_": ("x //= y",),
    "remainder_": ("x %= y",),
    "pow_": ("x **= y",),
    "__iand__": ("x &= y",),
    "__ior__": ("x |= y",),
    "__ixor__": ("x ^= y",),
    "__ilshift__": ("x <<= y",),
    "__irshift__": ("x >>= y",),
    "eq": ("x == y",),
    "ne": ("x != y",),
    "lt": ("x < y",),
    "le": ("x <= y",),
    "gt": ("x > y",),
    "ge": ("x >= y",),
    "numpy_T": ("x.T",),
    "matrix_H": ("x.H",),
    "unbind": ("for row in x", "a, b = x"),
}
NOT_SPELLED = frozenset({"index"})  # Tensor.index is of another kind, and torch.index does not exist
PROPERTIES = frozenset({"mT", "mH", "real", "imag"})


def spelled(name: str) -> tuple[str, ...]:
    """Every Python spelling of the operation, the plain ones first."""
    return tuple(dict.fromkeys([*_spelled(name), *OPERATORS.get(name, ())]))


def _spelled(name: str) -> Iterator[str]:
    if name.startswith("__") or name in NOT_SPELLED:
        return
    if (
        isinstance(getattr(torch.Tensor, name, None), property)
        or name in PROPERTIES
        or callable(getattr(torch.Tensor, name, None))
    ):
        yield f"x.{name}"
    for prefix, (home, path) in HOMES.items():
        if name.startswith(prefix) and hasattr(home, name.removeprefix(prefix)):
            yield f"{path}.{name.removeprefix(prefix)}"
    if callable(getattr(torch, name, None)) and not inspect.isclass(getattr(torch, name)):
        yield f"torch.{name}"
    yield from (f"F.{one}" for one in functions().get(name, ()))
    given = getattr(F, name[:-1], None) if name.endswith("_") else None
    if inspect.isfunction(given) and "inplace" in inspect.signature(given).parameters:
        yield f"F.{name[:-1]}(x, inplace=True)"


@lru_cache(maxsize=1)
def functions() -> dict[str, list[str]]:
    """The public functions of torch.nn.functional, by the operation they run; its namesake comes first."""
    known = {name.partition(".")[0] for name in formulas()}
    found: dict[str, list[str]] = {}
    for name in sorted(dir(F), key=lambda name: (name in RENAMED, name)):
        given = getattr(F, name)
        operation = RENAMED.get(name, name)
        if not name.startswith("_") and callable(given) and not inspect.isclass(given) and operation in known:
            found.setdefault(operation, []).append(name)
    return found
