"""What torch's derivative formulas say of every overload: differentiable or not, and what backward keeps."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torchgen  # type: ignore[import-untyped]

from tensafe.ops.row import OLD, Graph

PACKAGED = os.path.join(os.path.dirname(torchgen.__file__), "packaged")
NATIVE = os.path.join(PACKAGED, "ATen", "native", "native_functions.yaml")
TAGS = os.path.join(PACKAGED, "ATen", "native", "tags.yaml")
DERIVATIVES = os.path.join(PACKAGED, "autograd", "derivatives.yaml")


@dataclass(frozen=True, slots=True)
class Formula:
    """What is known of an overload's derivative; `graph` is None where only running it can tell."""

    graph: Graph | None
    saves: dict[str, tuple[str, ...]]
    methods: bool  # is a method of Tensor
    function: bool  # is a function of a module
    module: str  # nn, linalg, fft, special, sparse, or empty for torch itself
    differentiable: tuple[str, ...] | None  # the arguments with a derivative, if there is a formula
    missing: tuple[str, ...]  # those of them whose derivative raises: not implemented


@lru_cache(maxsize=1)
def formulas() -> dict[str, Formula]:
    """By full name, as in `add.Tensor`."""
    from torchgen.api.autograd import match_differentiability_info  # type: ignore[import-untyped]
    from torchgen.gen import parse_native_yaml  # type: ignore[import-untyped]
    from torchgen.packaged.autograd.gen_variable_type import DONT_REQUIRE_DERIVATIVE  # type: ignore[import-untyped]
    from torchgen.packaged.autograd.load_derivatives import load_derivatives  # type: ignore[import-untyped]

    functions = parse_native_yaml(NATIVE, TAGS).native_functions
    infos, _ = load_derivatives(DERIVATIVES, NATIVE, TAGS)
    found = {}
    for one in match_differentiability_info(functions, infos):
        info = None if one.info is None else one.info.get("Default")  # others are for nested tensors alone
        found[str(one.func.func.name)] = _formula(one.func, info, DONT_REQUIRE_DERIVATIVE)
    return found


def _formula(function: Any, info: Any, cut: set[str]) -> Formula:
    from torchgen.model import Variant  # type: ignore[import-untyped]

    return Formula(
        _graph(function, info, cut),
        {} if info is None else _saves(function, info),
        Variant.method in function.variants,
        Variant.function in function.variants,
        function.python_module or "",
        None if info is None else _differentiable(info),
        () if info is None else _missing(info),
    )


def _graph(function: Any, info: Any, cut: set[str]) -> Graph | None:
    if not _tensors(function.func.arguments.flat_all) or not function.func.returns:
        return Graph.NONE
    if not _tensors(function.func.returns):
        return Graph.CUT
    if str(function.func.name.name.base) in cut or str(function.func.name.name) in cut:
        return Graph.CUT
    if info is None:
        return None if function.has_composite_implicit_autograd_kernel else Graph.REFUSED
    differentiable = info.output_differentiability
    if not info.derivatives or (differentiable is not None and not any(differentiable)):
        return Graph.CUT
    if set(_missing(info)) != set(_differentiable(info)):
        return Graph.KEPT
    # chunk has a formula that nested tensors alone use: all others run its parts
    return None if function.has_composite_implicit_autograd_kernel else Graph.REFUSED


def _differentiable(info: Any) -> tuple[str, ...]:
    return tuple(name for one in info.derivatives for name in one.var_names)


def _missing(info: Any) -> tuple[str, ...]:
    """The arguments for whose gradient there is a node, and all that its backward does is to raise."""
    missing = [
        one for one in info.derivatives if one.original_formula.lstrip().startswith("not_implemented(")
    ]
    return tuple(name for one in missing for name in one.var_names)


def _tensors(arguments: Any) -> list[str]:
    return [str(one.name) for one in arguments if one.type.is_tensor_like()]


def _saves(function: Any, info: Any) -> dict[str, tuple[str, ...]]:
    """For the gradient of which argument autograd keeps what; `old self` is a copy made before the write."""
    found: dict[str, tuple[str, ...]] = {}
    in_place = function.func.kind().name == "inplace"
    for one in info.derivatives:
        inputs = [_name(saved) for saved in one.saved_inputs if _is_tensor(saved)]
        kept = [f"{OLD}{name}" if in_place and name == "self" else name for name in inputs]
        kept += [_name(saved) for saved in one.saved_outputs if _is_tensor(saved)]
        for name in one.var_names if kept else ():
            found[name] = tuple(dict.fromkeys([*found.get(name, ()), *kept]))
    return found


def _name(saved: Any) -> str:
    return str(getattr(saved.nctype.name, "name", saved.nctype.name))


def _is_tensor(saved: Any) -> bool:
    words = str(saved.nctype.type)
    return "name='Tensor'" in words or "TensorList" in words or "TensorRef" in words
