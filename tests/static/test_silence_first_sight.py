"""Correct code on which tensafe spoke at first sight is silent, and the fault beside it is found."""

from __future__ import annotations

import pytest

from static.checking import expected, found
from static.first_sight import aliases, graphs, names

PAIRS = [
    pytest.param(*pair, id=name) for module in (aliases, graphs, names) for name, pair in module.PAIRS.items()
]


@pytest.mark.parametrize(("correct", "twin"), PAIRS)
def test_correct_code_is_silent_and_its_twin_is_found(correct: str, twin: str) -> None:
    assert found(correct) == []
    assert found(twin) == expected(twin)
