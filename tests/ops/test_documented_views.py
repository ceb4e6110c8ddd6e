"""The list of view operations in PyTorch's documentation ("Tensor Views") agrees with the table."""

from __future__ import annotations

import pytest

from tensafe.ops.names import rows_named
from tensafe.ops.row import Result
from tensafe.ops.stored import stored

VIEWS = [
    "adjoint",
    "as_strided",
    "detach",
    "diagonal",
    "expand",
    "expand_as",
    "movedim",
    "narrow",
    "permute",
    "select",
    "squeeze",
    "transpose",
    "t",
    "T",
    "H",
    "mT",
    "mH",
    "real",
    "imag",
    "view_as_real",
    "unflatten",
    "unfold",
    "unsqueeze",
    "view",
    "view_as",
    "unbind",
    "split",
    "hsplit",
    "vsplit",
    "tensor_split",
    "split_with_sizes",
    "swapaxes",
    "swapdims",
    "chunk",
    "indices",
    "values",
]
# "can return either a view or new tensor", and "returns itself if input tensor is already contiguous"
EITHER = ["reshape", "reshape_as", "flatten", "contiguous"]
BASIC_INDEXING = ["tensor[0, 2:, 1:7:2]", "tensor[0]", "tensor[1:3]", "tensor[..., None]"]
ADVANCED_INDEXING = ["tensor[mask]", "tensor[index]", "tensor[[0, 2]]", "tensor[tensor > 0]"]


def gives(name: str) -> Result:
    return stored()[rows_named(name, stored())[0]].gives


@pytest.mark.parametrize("name", VIEWS)
def test_a_documented_view_is_a_view(name: str) -> None:
    assert gives(f"Tensor.{name}") is Result.VIEW


@pytest.mark.parametrize("name", EITHER)
def test_what_is_documented_as_either_is_either(name: str) -> None:
    assert gives(f"Tensor.{name}") is Result.EITHER


@pytest.mark.parametrize("name", BASIC_INDEXING)
def test_basic_indexing_gives_a_view(name: str) -> None:
    assert gives(name) is Result.VIEW


@pytest.mark.parametrize("name", ADVANCED_INDEXING)
def test_advanced_indexing_gives_a_copy(name: str) -> None:
    assert gives(name) is Result.COPY


@pytest.mark.parametrize("name", ["tensor[0] = 1", "tensor[mask] = 1", "tensor[[0, 2]] = 1"])
def test_assignment_by_either_is_in_place(name: str) -> None:
    assert stored()[rows_named(name, stored())[0]].writes == ("x",)
