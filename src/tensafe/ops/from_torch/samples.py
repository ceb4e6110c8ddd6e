"""Calls to run: torch's own sample inputs, as function, as method, in place and with `out=`."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tensafe.ops.from_torch.binding import Labels, in_turn, labels_of
from tensafe.ops.from_torch.call import Call
from tensafe.ops.from_torch.more_samples import more_calls
from tensafe.ops.from_torch.observing import Seen, observe, tensors_in
from tensafe.ops.row import Row

DTYPES = (torch.float32, torch.complex64, torch.int64, torch.bool)
# Their samples do not run on a CPU.
NOT_ON_CPU = ("jiterator_",)
# Listed under the plain name, and run in place: `x.uniform_()`.
WRITE_IN_PLACE = frozenset(["cauchy", "exponential", "geometric", "log_normal", "normal", "uniform"])
# Their function is another: it clones first, or takes its arguments in an order of its own.
NOT_AS_CALLED = frozenset({"zero_", "resize_", "resize_as_"})
# Run another operation first, and are told apart from it by nothing.
NOT_ALONE = frozenset({"max_pool2d_with_indices_backward"})
# Functions of the samples that take the tensors in an order of their own.
ORDERS = {
    "F.embedding": ("weight", "indices"),
    "F.embedding_bag": ("weight", "indices"),
    "torch.einsum": ("equation", "tensors"),
    "torch.where": ("self", "condition", "other"),
    "x.where": ("self", "condition", "other"),
    "x.__rmatmul__": ("other", "self"),
    "x.__rpow__": ("exponent", "self"),
    "x.__rmod__": ("other", "self"),
}


def spelling_of(operation: str) -> str:
    """`F.relu` for `nn.functional.relu`."""
    home, _, name = operation.rpartition(".")
    if home == "nn.functional":
        return f"F.{name}"
    if operation.startswith("torch.ops.aten."):
        return "aten::" + operation.split(".")[3]
    if operation.startswith("torch."):
        return operation
    if home:
        return f"torch.{operation}"
    return f"torch.{name}" if callable(getattr(torch, name, None)) else f"x.{name}"


def calls(most: int | None = None, wanted: Callable[[str], bool] = bool) -> Iterator[Call]:
    """Every call of wanted spellings, from at most so many samples an operation and element type."""
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if not op.name.startswith(NOT_ON_CPU) and op.name not in NOT_ALONE and _is_wanted(op, wanted):
            for dtype in DTYPES:
                if dtype in op.supported_dtypes("cpu"):
                    torch.manual_seed(0)
                    for sample in itertools.islice(_samples(op, dtype), most):
                        yield from _variants(op, sample, dtype)
                        yield from _aliases(op, sample, dtype)
    yield from more_calls()


def _is_wanted(op: Any, wanted: Callable[[str], bool]) -> bool:
    names = [op.name, *(alias.name for alias in op.aliases)]
    methods = [name.rpartition(".")[2] for name in names]
    spellings = [
        *map(spelling_of, names),
        *(f"x.{name}" for name in methods),
        *(f"x.{one}_" for one in methods),
    ]
    return any(map(wanted, spellings))


def _samples(op: Any, dtype: torch.dtype) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # not `op.sample_inputs`, which walks the whole stack at every sample to learn the test's name
        yield from op.sample_inputs_func(op, "cpu", dtype, _may_require_grad(dtype))


def _may_require_grad(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _variants(op: Any, sample: Any, dtype: torch.dtype) -> Iterator[Call]:
    given, named = (sample.input, *sample.args), dict(sample.kwargs)
    spelling = spelling_of(op.name)
    if op.name in WRITE_IN_PLACE and op.inplace_variant is not None:
        yield Call(op.name, f"x.{op.name}_", op.op, given, named, dtype)
        return
    if op.name in NOT_AS_CALLED:
        yield Call(op.name, f"x.{op.name}", getattr(torch.Tensor, op.name), given, named, dtype)
        return
    yield Call(op.name, spelling, op.op, given, named, dtype)
    if dtype is torch.float32 and _has_strides(sample.input):
        scattered = torch.testing._internal.common_utils.noncontiguous_like(sample.input)
        yield Call(op.name, spelling, op.op, (scattered, *given[1:]), named, dtype)
    if op.method_variant is not None and spelling != f"x.{op.name}":
        yield Call(op.name, f"x.{op.name}", op.method_variant, given, named, dtype)
    if op.inplace_variant is not None and isinstance(sample.input, torch.Tensor):
        yield Call(
            op.name, f"x.{_in_place_name(op)}", op.inplace_variant, (sample.input, *sample.args), named, dtype
        )
    if op.supports_out:
        yield Call(op.name, spelling, op.op, given, named, dtype, out=True)


def _aliases(op: Any, sample: Any, dtype: torch.dtype) -> Iterator[Call]:
    """The other names that torch has for the operation."""
    given, named = (sample.input, *sample.args), dict(sample.kwargs)
    for alias in op.aliases:
        name = alias.name
        if alias.op is not None:
            yield Call(name, spelling_of(name), alias.op, given, named, dtype)
        if alias.method_variant is not None:
            yield Call(name, f"x.{name}", alias.method_variant, given, named, dtype)
        if alias.inplace_variant is not None and isinstance(sample.input, torch.Tensor):
            yield Call(name, f"x.{name}_", alias.inplace_variant, given, named, dtype)


def _has_strides(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided and value.numel() > 1


def _in_place_name(op: Any) -> str:
    """The variant may be a lambda or a partial; `__iadd__` is a name of its own."""
    name = getattr(op.inplace_variant, "__name__", "")
    return name if hasattr(torch.Tensor, name) else op.name.rpartition(".")[2] + "_"


def fresh(value: Any) -> Any:
    """A copy of the arguments with the same sharing of strides: leaves that require a gradient stay so."""
    if isinstance(value, torch.Tensor):
        return _fresh_tensor(value)
    if isinstance(value, tuple | list):
        made = [fresh(one) for one in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, dict):
        return {key: fresh(one) for key, one in value.items()}
    return value


def _fresh_tensor(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.layout is not torch.strided:
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.detach().untyped_storage())
    whole = storage.clone()
    made = whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    made = torch._conj(made) if tensor.is_conj() else made
    made = torch._neg_view(made) if tensor.is_neg() else made
    return made.detach().requires_grad_(tensor.requires_grad)


class NotRun(Exception):
    """The call cannot be made as it stands: torch refuses it."""


def run(call: Call, row: Row) -> tuple[str | None, Seen]:
    """Make the call on fresh arguments; the overload, if it can be told; NotRun where torch refuses."""
    given, named = fresh(call.given), fresh(call.named)
    try:
        return _run(call, row, given, named)
    except NotRun:
        if not any(one.requires_grad for one in tensors_in([given, named])):
            raise
        return _run(call, row, _without_grad(given), _without_grad(named))


def _without_grad(value: Any) -> Any:
    """The arguments again, none of which requires a gradient: not every operation takes those."""
    made = fresh(value)
    for one in tensors_in(made):
        one.requires_grad_(False)
    return made


def _run(call: Call, row: Row, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[str | None, Seen]:
    in_place = call.spelling.endswith("_") and call.spelling != "x.requires_grad_"
    if in_place and isinstance(given[0], torch.Tensor) and given[0].requires_grad:
        given = (given[0].clone(memory_format=torch.preserve_format), *given[1:])
    with contextlib.ExitStack() as stack:
        if call.out:
            stack.enter_context(torch.no_grad())
            named = {**named, "out": _outs(call, given, named)}
        try:
            overload, labels = _labels(call, row, given, named)
            return overload, observe(call.call, labels, *given, **named)
        except (RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError) as error:
            raise NotRun(f"{type(error).__name__}: {error}".split("\n")[0]) from error


def _labels(call: Call, row: Row, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[str | None, Labels]:
    order = ORDERS.get(call.spelling)
    if order is not None:
        return None, in_turn(order, given, named)
    out = {"out": named["out"]} if call.out else {}
    rest = {key: value for key, value in named.items() if key not in out}
    overload, labels = labels_of(row, call, given, rest)
    return overload, [*labels, *out.items()]


def _outs(call: Call, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = call.call(*given, **named)
    except (RuntimeError, TypeError, ValueError) as error:
        raise NotRun(str(error)) from error
    outs = [torch.empty_like(one, memory_format=torch.contiguous_format) for one in tensors_in(results)]
    return outs[0] if len(outs) == 1 and isinstance(results, torch.Tensor) else tuple(outs)
