"""The calls that torch's own samples make, and the rows as this torch gives them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import pytest
import torch

from tensafe.ops.from_torch.build import build
from tensafe.ops.from_torch.call import Call
from tensafe.ops.from_torch.samples import calls
from tensafe.ops.row import Row
from tensafe.ops.stored import stored

SAMPLES = 5
# How many samples an operation and element type: a number, or `all`.
WANTED = os.environ.get("TENSAFE_OPS_SAMPLES", str(SAMPLES))
OTHER_TORCH = torch.__version__.partition("+")[0] != stored().torch_version.partition("+")[0]
needs_the_same_torch = pytest.mark.skipif(
    OTHER_TORCH, reason=f"the table is of torch {stored().torch_version}, this is {torch.__version__}"
)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """The samples are tiny: more threads than one only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made(most: int | None) -> list[Call]:
    pytest.importorskip("expecttest", reason="torch's own samples need it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(calls(most))


@pytest.fixture(scope="session")
def few() -> list[Call]:
    """The calls of a few samples of each operation."""
    return made(SAMPLES)


@pytest.fixture(scope="session")
def wanted(few: list[Call]) -> list[Call]:
    """As many calls as this run is asked for."""
    if str(SAMPLES) == WANTED:
        return few
    return made(None if WANTED == "all" else int(WANTED))


@pytest.fixture(scope="session")
def fresh_rows() -> dict[str, Row]:
    """The table, made anew."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build()
