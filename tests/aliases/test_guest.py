"""Looking at tensors changes nothing of the program, runs none of its code, and keeps nothing alive."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import tensafe

LOOKS: list[Callable[[Any], object]] = [
    tensafe.explain,
    tensafe.memory_map,
    lambda x: tensafe.memory_map(x, hash=True),
    lambda x: str(tensafe.explain(x)),
]
LOOK = pytest.mark.parametrize("look", LOOKS, ids=["explain", "map", "hash", "print"])


@LOOK
def test_nothing_is_kept_alive(look: Callable[[Any], object]) -> None:
    tensor = torch.zeros(1000)
    freed = [weakref.ref(tensor), weakref.ref(tensor.untyped_storage())]
    holder = {"view": tensor[:1]}
    kept = look(tensor)
    del tensor, holder
    gc.collect()
    assert [reference() for reference in freed] == [None, None]
    assert kept is not None


@LOOK
def test_a_variable_of_a_caller_is_freed_when_deleted(look: Callable[[Any], object]) -> None:
    def inner(x: Tensor) -> object:
        return look(x)

    other = torch.zeros(7)
    freed = weakref.ref(other)
    inner(torch.zeros(3))
    del other
    assert freed() is None


@LOOK
def test_the_dictionary_of_locals_that_the_program_holds_stays(look: Callable[[Any], object]) -> None:
    mine = locals()
    look(torch.zeros(3))
    assert mine["look"] is look


@LOOK
def test_lazy_clones_stay_lazy(look: Callable[[Any], object]) -> None:
    source = torch.zeros(1000)
    lazy = torch._lazy_clone(source)
    look(lazy[10:])
    look(source)
    assert torch._C._is_cow_tensor(lazy)
    assert torch._C._is_cow_tensor(source)


@LOOK
def test_versions_references_gradients_and_random_numbers_stay(look: Callable[[Any], object]) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    y = (weight * 2).exp()
    loss = y.sum()
    before = _visible(weight, y, loss)
    look(y)
    gc.collect()
    assert _visible(weight, y, loss) == before
    loss.backward()


def _visible(*tensors: Tensor) -> list[object]:
    generators = [torch.random.get_rng_state().tolist(), np.random.get_state()[2]]
    state: list[object] = [*generators, torch.is_grad_enabled()]
    for tensor in tensors:
        state += [tensor._version, sys.getrefcount(tensor), tensor.requires_grad, tensor.is_leaf]
    return state


class Functions(TorchFunctionMode):
    """Counts what is called."""

    seen = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    """Counts what is dispatched."""

    seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


@LOOK
def test_modes_of_the_program_see_nothing(look: Callable[[Any], object]) -> None:
    weight = torch.ones(3, requires_grad=True)
    y = weight.exp()
    sparse = torch.eye(3).to_sparse()
    functions, operations = Functions(), Operations()
    with functions, operations:
        look(y)
        look(weight)
        look(sparse)
    assert (functions.seen, operations.seen) == (0, 0)


class Talking(Tensor):
    """A subclass that tells when it is asked."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        pytest.fail(f"{func} was asked")


@LOOK
def test_a_subclass_is_not_asked(look: Callable[[Any], object]) -> None:
    with torch._C.DisableTorchFunctionSubclass():
        talking = torch.ones(3).as_subclass(Talking)
    look(talking)


def test_hooks_of_the_program_do_not_run() -> None:
    ran = []

    def unpack(saved: Tensor) -> Tensor:
        ran.append(1)
        return saved

    weight = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        loss = weight.detach().mul(weight).sum()
    tensafe.explain(weight)
    assert not ran
    loss.backward()
    assert ran


def test_a_profiler_of_the_program_stays() -> None:
    weight = torch.ones(3, requires_grad=True)
    y = weight.exp()

    def profile(*_arguments: object) -> None:
        return None

    sys.setprofile(profile)
    try:
        tensafe.explain(y)
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)
    tensafe.explain(y)
    assert sys.getprofile() is None


def test_what_was_saved_can_still_be_found_and_used() -> None:
    weight = torch.ones(3, requires_grad=True)
    y = weight.exp()
    loss = y.exp().sum()
    for _ in range(3):
        assert tensafe.explain(y).unnamed_aliases == ()
    loss.backward()
    assert torch.allclose(weight.grad, torch.ones(3).exp().exp() * torch.ones(3).exp())  # type: ignore[arg-type]
