"""`tensafe.overlap` asks subclasses nothing, changes nothing, and works inside transforms and tracers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tensafe.aliases.overlap import Overlap, overlap
from tensafe.errors import TensafeError
from tensafe.memory import Undecided


class Holder(torch.Tensor):
    """A wrapper subclass: its own storage is empty."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Holder:
        new = torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)
        new.held = held
        return new  # type: ignore[no-any-return]

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["held"], None

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{function} was run")


class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{function} was asked")


def test_subclasses_are_looked_into_and_not_asked() -> None:
    x = torch.arange(6.0)
    assert overlap(torch.nn.Parameter(x), x[5:]) is not None
    assert overlap(x.as_subclass(Loud), x[5:]) is not None
    assert overlap(x[:5].as_subclass(Loud), x[5:]) is None
    found = overlap(Holder(x), x[5:])
    assert isinstance(found, Overlap)
    assert found.a.part == "held"
    assert overlap(Holder(x), Holder(x.clone())) is None


class Hollow(torch.Tensor):
    """A wrapper subclass that does not say what it holds."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Hollow:
        new = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        new.inner = inner
        return new  # type: ignore[no-any-return]

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{function} was run")


class Lying(Holder):
    def __tensor_flatten__(self) -> tuple[list[str], None]:
        raise ValueError("not today")


def test_wrappers_that_say_nothing_or_fail() -> None:
    x = torch.arange(6.0)
    found = overlap(Hollow(x), x[5:])
    assert isinstance(found, Overlap)
    assert found.a.part == "inner"
    assert "is in a.inner[5] and in b[0]" in str(found)
    with pytest.raises(TensafeError, match="__tensor_flatten__ of Lying raised ValueError"):
        overlap(Lying(x), x)


def test_lazy_clones_stay_lazy_and_share_nothing() -> None:
    x = torch.arange(8.0)
    exported = x.numpy()
    clone = torch._lazy_clone(x)
    assert overlap(x, clone) is None
    assert overlap(clone[2:], clone[:3]) is not None
    assert overlap(x, x[3:]) is not None
    if hasattr(torch.Tensor, "const_data_ptr"):
        found = overlap(exported, x)
        assert isinstance(found, Overlap), "the array was taken before: writes to it reach the tensor"
        assert found.note == "copy-on-write"
    else:
        assert overlap(torch.zeros(2), clone) is None or isinstance(overlap(torch.zeros(2), clone), Undecided)
    assert torch._C._is_cow_tensor(x)  # type: ignore[attr-defined]
    assert torch._C._is_cow_tensor(clone)  # type: ignore[attr-defined]


def test_nothing_is_written_read_or_run() -> None:
    x = torch.rand(4, requires_grad=True)
    y = x * 2
    before = (x._version, y._version, torch.get_rng_state())
    frozen = torch.zeros(4)
    torch._C._set_throw_on_mutable_data_ptr(frozen)

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError(f"{function} was run")

    with Watch():
        assert overlap(x, y) is None
        assert overlap(y, y) is not None
        assert overlap(frozen, frozen) is not None
        assert overlap(frozen, y) is None
    assert (x._version, y._version) == before[:2]
    assert torch.equal(torch.get_rng_state(), before[2])


def test_inside_function_transforms() -> None:
    x = torch.zeros(3, 4)
    answers: list[bool] = []

    def see(row: torch.Tensor) -> torch.Tensor:
        answers.append(overlap(row, row[1:]) is not None)
        answers.append(overlap(row, row.clone()) is None)
        return row

    torch.vmap(see)(x)
    torch.func.grad(lambda row: see(row).sum())(x)
    with torch.device("cpu"):
        see(x)
    with torch.inference_mode():
        see(x + 0)
    assert answers == [True] * 8


def test_while_a_program_is_traced() -> None:
    answers: list[bool] = []

    def see(x: torch.Tensor) -> torch.Tensor:
        answers.append(overlap(x, x[1:]) is not None and overlap(x[:1], x[1:]) is None)
        return x + 1

    traced = torch.jit.trace(see, torch.zeros(3))
    assert answers == [True] * len(answers)
    assert answers
    assert "aten::size" not in str(traced.graph), "our own questions are not recorded"


def test_symbolic_sizes_are_refused_and_not_fixed() -> None:
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    shapes = ShapeEnv()
    x = FakeTensorMode(shape_env=shapes).from_tensor(torch.zeros(5, 4))
    known = len(shapes.guards)
    with pytest.raises(TensafeError, match="its sizes are symbolic"):
        overlap(x, x)
    assert len(shapes.guards) == known
