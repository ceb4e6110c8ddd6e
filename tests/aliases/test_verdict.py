"""`may_write` against the write itself: it raises, it spoils a gradient, or it is fine."""

from __future__ import annotations

import pytest
import torch

import aliases.more_situations
from aliases.situations import SITUATIONS, Made
from aliases.trying import modes, outcome, parameter
from tensafe import explain

assert aliases.more_situations.__name__


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_verdict_is_what_happens(name: str) -> None:
    make, code = SITUATIONS[name]
    made = make(parameter())
    with modes(made):
        found = explain(made.x)
    happens = outcome(make)
    if found.not_seen and "hooks" in found.not_seen[0]:
        pytest.skip(found.not_seen[0])  # torch before 2.13 shows what hooks keep only by running them
    assert found.may_write == (happens == "fine"), f"{happens}\n{found}"
    assert [reason.code for reason in found.reasons[:1]] == ([code] if code else []), found
    assert all(reason.effect == _effect(happens) for reason in found.reasons[:1]), f"{happens}\n{found}"


def _effect(happens: str) -> str:
    return "silently wrong" if happens.startswith("wrong") else happens


@pytest.mark.parametrize("name", SITUATIONS)
def test_explaining_changes_nothing(name: str) -> None:
    make, _ = SITUATIONS[name]
    made = make(parameter())
    with modes(made):
        before = _state(made)
        explain(made.x)
        explain(made.x)
        assert _state(made) == before


def _state(made: Made) -> list[object]:
    x = made.x
    lazy = x.layout is torch.strided and torch._C._is_cow_tensor(x)
    version = None if x.is_inference() else x._version
    return [
        version,
        x.requires_grad,
        lazy,
        torch.is_grad_enabled(),
        torch.random.get_rng_state().tolist()[:16],
    ]
