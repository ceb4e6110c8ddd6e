"""What really happens when a tensor is written in place: the judge of every verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from aliases.situations import Made, Make

STEP = 1e-6
TOLERANCE = 1e-4


def parameter() -> Tensor:
    return torch.tensor([0.5, 1.5, 2.5, 3.5], dtype=torch.float64, requires_grad=True)


@contextlib.contextmanager
def modes(made: Made) -> Iterator[None]:
    """Those in which the write is to be done."""
    with torch.inference_mode() if made.inference else torch.set_grad_enabled(made.grad_mode):
        yield


def outcome(make: Make) -> str:
    """`fine`, `raises`, `raises later`, `raises in backward`, `wrong values`, `wrong gradient`."""
    p = parameter()
    made = make(p)
    try:
        with modes(made):
            written = _written(made)
    except RuntimeError:
        return "raises"
    if not written:
        return "wrong values"
    if made.loss is None:
        return "fine"
    try:
        loss = made.loss()
    except RuntimeError:
        return "raises later"
    try:
        loss.backward()
    except RuntimeError:
        return "raises in backward"
    assert p.grad is not None
    return "fine" if torch.allclose(p.grad, _differences(make), atol=TOLERANCE) else "wrong gradient"


def _written(made: Made) -> bool:
    """Write; whether every element then has the value that the same operation gives out of place."""
    expected = made.x.detach().clone()
    if expected.is_sparse or expected.device.type == "meta":
        made.write(made.x)
        return True
    made.write(expected)
    made.write(made.x)
    return bool(torch.equal(made.x.detach(), expected))


def _differences(make: Make) -> Tensor:
    """The gradient of the whole program, write included, by central differences."""
    gradient = torch.zeros(4, dtype=torch.float64)
    for place in range(4):
        gradient[place] = (_value(make, place, STEP) - _value(make, place, -STEP)) / (2 * STEP)
    return gradient


def _value(make: Make, place: int, step: float) -> float:
    p = parameter()
    with torch.no_grad():
        p[place] += step
    made = make(p)
    with modes(made):
        made.write(made.x)
    assert made.loss is not None
    return made.loss().item()
