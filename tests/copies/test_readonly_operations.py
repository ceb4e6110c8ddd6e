"""Operations of PyTorch's own list read a read-only tensor and give what they give for a plain one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

import tensafe
from tensafe.copies.readonly_tensor import ReadOnlyError, ReadOnlyTensor, plain_of

EVERY = 4  # the whole list (EVERY = 1) takes a minute on a busy machine, and refuses the writers alone
REFUSALS = (RuntimeError, ValueError, TypeError, ImportError, AssertionError, StopIteration)
"""What an operation raises that this build of torch does not have."""
WRITERS = {
    "cauchy", "exponential", "geometric", "log_normal", "normal", "uniform",  # the methods `x.normal_()`, ...
    "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update",  # running statistics
    "nn.functional.batch_norm", "nn.functional.instance_norm",
}  # fmt: skip


def samples() -> Iterator[tuple[Any, Any]]:
    operations = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    for operation in operations.op_db[::EVERY]:
        if torch.float32 in operation.supported_dtypes("cpu"):
            try:
                found = operation.sample_inputs("cpu", torch.float32, requires_grad=False)
                yield operation, next(iter(found))
            except REFUSALS:
                continue


def outcome(operation: Any, sample: Any, change: Any) -> list[torch.Tensor]:
    """The tensors that come out, with the same random numbers each time."""
    torch.manual_seed(0)
    arguments = tree_map(change, (sample.input, sample.args, sample.kwargs))
    found = tree_leaves(operation(arguments[0], *arguments[1], **arguments[2]))
    return [_plain(one) for one in found if isinstance(one, torch.Tensor)]


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return plain_of(tensor) if isinstance(tensor, ReadOnlyTensor) else tensor


def _read_only(value: Any) -> Any:
    strided = isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_nested
    return tensafe.readonly(value) if strided else value


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype or one.layout is not torch.strided:
        return one.shape == other.shape and one.dtype == other.dtype
    return bool(torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True))


def test_every_operation_reads_and_only_writers_are_refused() -> None:
    refused, different, compared = set(), set(), 0
    before = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for operation, sample in samples():
            try:
                plain = outcome(operation, sample, lambda value: value)
            except REFUSALS:
                continue
            compared += 1
            try:
                ours = outcome(operation, sample, _read_only)
            except ReadOnlyError:
                refused.add(operation.name)
                continue
            same = len(ours) == len(plain) and all(map(_same, ours, plain))
            if not same and "empty" not in operation.name:
                different.add(operation.name)
    torch.set_rng_state(before)
    assert compared > 100
    assert refused <= WRITERS
    assert not different
