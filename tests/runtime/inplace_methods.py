"""Every in-place method of `torch.Tensor` with arguments, from the class itself and torch's own samples."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.testing._internal.common_methods_invocations import op_db

SAMPLES = 3  # of each method
NO_WRITES = {"requires_grad_", "rename_", "names_", "share_memory_", "set_"}


class Method(NamedTuple):
    """A call of an in-place method."""

    name: str
    value: torch.Tensor  # float64
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def on(self, tensor: torch.Tensor) -> torch.Tensor:
        """Call it; random methods draw the same each time."""
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result: torch.Tensor = getattr(tensor, self.name)(*self.args, **self.kwargs)
        return result


def names() -> list[str]:
    """In-place methods and augmented operators."""
    named = [name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")]
    augmented = [name for name in dir(torch.Tensor) if name.startswith("__i") and name[3:] in _OPERATORS]
    return [name for name in named if name not in NO_WRITES] + augmented


_OPERATORS = {f"{name}__" for name in ("add", "sub", "mul", "truediv", "div", "floordiv", "mod", "pow")}


def methods(name: str) -> Iterator[Method]:
    """Calls of one method that run on a plain float64 tensor."""
    found = 0
    for value, args, kwargs in itertools.chain(_from_op_db(name), _generated()):
        method = Method(name, value, args, kwargs)
        if _runs(method):
            yield method
            found += 1
            if found == SAMPLES:
                return


def _runs(method: Method) -> bool:
    try:
        return isinstance(method.on(method.value.clone()), torch.Tensor)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError):
        return False


def _from_op_db(name: str) -> Iterator[tuple[torch.Tensor, tuple[Any, ...], dict[str, Any]]]:
    stem = name.strip("_").removeprefix("i") if name.startswith("__") else name[:-1]
    for op in _by_name().get(stem, ()):
        if torch.float64 not in op.supported_dtypes("cpu"):
            continue
        for sample in op.sample_inputs("cpu", torch.float64):
            if isinstance(sample.input, torch.Tensor) and sample.input.numel():
                yield sample.input.detach(), sample.args, sample.kwargs


@functools.cache
def _by_name() -> dict[str, list[Any]]:
    known: dict[str, list[Any]] = {}
    for op in op_db:
        for name in {op.name, *(alias.name for alias in op.aliases)}:
            known.setdefault(name.rpartition(".")[2], []).append(op)
    return known


def _generated() -> Iterator[tuple[torch.Tensor, tuple[Any, ...], dict[str, Any]]]:
    """A square of numbers between 0 and 1, with a few arguments of every usual kind."""
    value = torch.rand(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 0.8 + 0.1
    other, vector = value.t().contiguous() + 0.5, value[0].clone()
    index, mask = torch.tensor([0, 2]), value > 0.5
    kinds: list[Callable[[], tuple[Any, ...]]] = [
        lambda: (),
        lambda: (0.5,),
        lambda: (2,),
        lambda: (other,),
        lambda: (0, 1),
        lambda: (0.25, 0.75),
        lambda: (other, vector),
        lambda: (other, other),
        lambda: (mask, 0.5),
        lambda: (mask, other),
        lambda: (0, index, 0.5),
        lambda: (0, index, value[:2].clone()),
        lambda: (0, index.view(2, 1), value[:2, :1].clone()),
        lambda: (index, value[0, :2].clone()),
        lambda: ((index,), value[:2].clone()),
        lambda: (vector, vector),
        lambda: (0.5, 1, 0.5),
        lambda: (2, 0, 1.0),
    ]
    for make in kinds:
        yield value, make(), {}
