"""`deepcopy.installed()`: reaches names that modules bound, and undoes all of it."""

from __future__ import annotations

import copy
import types
from copy import deepcopy as bound_here
from typing import Any

import pytest
import torch
from torch.optim.swa_utils import AveragedModel

import tensafe

STOCK = copy.deepcopy


def test_it_replaces_and_puts_back() -> None:
    with tensafe.deepcopy.installed() as installed:
        assert copy.deepcopy is tensafe.deepcopy
        assert "copy.deepcopy" in installed.reached
        assert "torch._tensor.deepcopy" in installed.reached
        assert f"{__name__}.bound_here" in installed.reached
        assert bound_here is tensafe.deepcopy
    assert copy.deepcopy is STOCK
    assert bound_here is STOCK


def test_it_puts_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), tensafe.deepcopy.installed():
        raise ZeroDivisionError
    assert copy.deepcopy is STOCK


def test_it_decorates_and_nests() -> None:
    @tensafe.deepcopy.installed()
    def inside() -> bool:
        with tensafe.deepcopy.installed(graph="cut"):
            copied = copy.deepcopy([torch.ones(2, requires_grad=True) * 2])
            assert copied[0].tolist() == [2.0, 2.0]
        return copy.deepcopy is tensafe.deepcopy

    assert inside()
    assert inside()
    assert copy.deepcopy is STOCK


def test_what_somebody_else_put_there_stays() -> None:
    def other(x: Any, memo: Any = None) -> Any:
        return x

    try:
        with tensafe.deepcopy.installed():
            copy.deepcopy = other
        assert copy.deepcopy is other
    finally:
        copy.deepcopy = STOCK


def test_libraries_that_copy_get_ours() -> None:
    model = torch.nn.Linear(2, 2)
    model.seen = model(torch.ones(1, 2))
    with pytest.raises(RuntimeError):
        AveragedModel(model)
    with tensafe.deepcopy.installed(graph="cut"):
        average = AveragedModel(model)
    assert torch.equal(average.module.weight, model.weight)


def test_modules_with_a_broken_namespace_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lazy(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise AssertionError("asked")

    import sys

    monkeypatch.setitem(sys.modules, "lazy_of_this_test", Lazy("lazy_of_this_test"))
    with tensafe.deepcopy.installed():
        pass
