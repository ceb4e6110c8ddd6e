"""Sources of random numbers: how their states are read and put back."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import torch

from tensafe.copies.snapshots.nodes import Stream


class Rng:
    """The marker `tensafe.rng`: in a snapshot, it stands for the process's global sources of random numbers.

    They are torch's CPU generator, those of the CUDA devices once CUDA is in use, Python's `random`, and
    NumPy's global generator once NumPy is imported.
    """

    def __repr__(self) -> str:
        return "tensafe.rng"


rng = Rng()


def _global_state(_: Any) -> dict[str, Any]:
    states: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state_all()
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None:
        states["numpy"] = numpy.get_state()
    return states


def _set_global_state(_: Any, states: dict[str, Any]) -> None:
    torch.set_rng_state(states["torch"])
    random.setstate(states["python"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
    if "numpy" in states:
        import numpy

        numpy.random.set_state(states["numpy"])


def _bits(generator: Any) -> Any:
    return generator.bit_generator.state


def _set_bits(generator: Any, state: Any) -> None:
    generator.bit_generator.state = state


_Reader = Callable[[Any], Any]
_Writer = Callable[[Any, Any], None]
STREAMS: dict[str, tuple[_Reader, _Writer]] = {
    "rng": (_global_state, _set_global_state),
    "torch": (lambda generator: generator.get_state(), lambda generator, state: generator.set_state(state)),
    "python": (lambda one: one.getstate(), lambda one, state: one.setstate(state)),
    "numpy": (_bits, _set_bits),
    "numpy legacy": (lambda one: one.get_state(), lambda one, state: one.set_state(state)),
}


def kind_of(one: Any) -> str | None:
    """Which source of random numbers an object is; None where it is none."""
    if isinstance(one, Rng):
        return "rng"
    if isinstance(one, torch.Generator):
        return "torch"
    if isinstance(one, random.Random) and not isinstance(one, random.SystemRandom):  # which has no state
        return "python"
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None and isinstance(one, numpy.Generator):
        return "numpy"
    if numpy is not None and isinstance(one, numpy.RandomState):
        return "numpy legacy"
    return None


def stream(kind: str, live: Any) -> Stream:
    """A source of random numbers with its state now."""
    return Stream(kind, live, STREAMS[kind][0](live))


def rewind(node: Stream, live: Any) -> None:
    """Put the state back, into the same or another source of its kind."""
    STREAMS[node.kind][1](live, node.state)


def same_state(a: Any, b: Any) -> bool:
    """Whether two states are equal; they hold tensors and arrays, which `==` does not compare."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same_state(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same_state, a, b))
    if hasattr(a, "tobytes"):
        return hasattr(b, "tobytes") and bool(a.tobytes() == b.tobytes())
    return bool(a == b)
