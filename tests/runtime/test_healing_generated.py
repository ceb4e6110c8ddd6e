"""Gradients under `safe_inplace` are those of the out-of-place twin: every method, every way to write.

The twin of `y.method_(...)` is `y.clone().method_(...)`, which no backward reads. A write that autograd does
not record (`.data`, `detach()`, the storage) has a twin with the new values and the old graph.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import torch

import tensafe
from runtime.inplace_methods import Method, methods, names
from tensafe.runtime.values.pointers import GROWING

STEP = 1e-6
NO_DERIVATIVE = {"logical_and_", "logical_or_", "logical_xor_", "random_"}
"""PyTorch passes the gradient through these as if they did nothing."""


@dataclass
class Route:
    """A way to write into `y`, given the method, and what later uses of `y` see in the twin."""

    write: Callable[[Method, torch.Tensor], torch.Tensor | None]
    recorded: bool
    offset: bool = False


def _foreach(method: Method, y: torch.Tensor) -> None:
    function = getattr(torch, f"_foreach_{method.name}")
    function([y], *method.args, **method.kwargs)


def _storage(method: Method, y: torch.Tensor) -> None:
    new = method.on(y.detach().clone()).contiguous()
    y.untyped_storage().copy_(new.untyped_storage())


def _into(target: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Method, torch.Tensor], torch.Tensor]:
    return lambda method, y: method.on(target(y))


ROUTES = {
    "direct": Route(_into(lambda y: y), recorded=True),
    "offset view": Route(_into(lambda y: y), recorded=True, offset=True),
    "data": Route(_into(lambda y: y.data), recorded=False),
    "detach": Route(_into(lambda y: y.detach()), recorded=False),
    "foreach": Route(_foreach, recorded=True),
    "storage": Route(_storage, recorded=False),
}


def _leaf(method: Method, route: Route) -> torch.Tensor:
    value = method.value.clone(memory_format=torch.contiguous_format)
    if route.offset:
        value = torch.stack([value, value])
    return value.requires_grad_()


def _used(saved: torch.Tensor, later: torch.Tensor) -> torch.Tensor:
    """A loss of what was computed before the write, and of a later use."""
    weight = torch.linspace(0.5, 1.5, later.numel(), dtype=later.dtype).reshape(later.shape)
    return saved.sum() + (later * later * weight).sum()


def _in_place(x: torch.Tensor, method: Method, route: Route, power: int = 2) -> torch.Tensor:
    whole = x * 1
    saved = whole * whole if power == 2 else whole * 1
    route.write(method, whole[1] if route.offset else whole)
    return _used(saved, whole)


def _out_of_place(x: torch.Tensor, method: Method, route: Route, frozen: torch.Tensor | None) -> torch.Tensor:
    """The twin; `frozen` are the values of an unrecorded write."""
    whole = x * 1
    saved = whole * whole
    if frozen is not None:
        return _used(saved, frozen + (whole - whole.detach()))
    if not route.offset:
        return _used(saved, method.on(whole.clone()))
    part = method.on(whole[1].clone())
    return _used(saved, torch.stack([whole[0], part]) if part.shape == whole[1].shape else whole)


def _gradient(loss: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    (gradient,) = torch.autograd.grad(loss, x)
    return gradient


def _cases(name: str) -> Iterator[tuple[str, Method, torch.Tensor, torch.Tensor | None, torch.Tensor]]:
    """Route, method, leaf, frozen values, the twin's gradient: all that plain PyTorch can differentiate."""
    for method in methods(name):
        for title, route in ROUTES.items():
            if title == "foreach" and not hasattr(torch, f"_foreach_{name}"):
                continue
            x = _leaf(method, route)
            try:
                frozen = None if route.recorded else method.on(x.detach().clone())
                if frozen is not None and (frozen.shape != x.shape or frozen.dtype != x.dtype):
                    continue
                if title == "foreach":
                    _foreach(method, x.detach().clone())
                _gradient(_in_place(x, method, route, power=1), x)  # nothing is saved before the write
                twin = _gradient(_out_of_place(x, method, route, frozen), x)
            except (RuntimeError, TypeError, NotImplementedError):
                continue  # autograd, or the foreach form, has no such call
            yield title, method, x, frozen, twin


def _follows_finite_differences(
    x: torch.Tensor, method: Method, route: Route, frozen: torch.Tensor | None, gradient: torch.Tensor
) -> bool | None:
    """Whether the slope along one direction agrees; None where the function has no slope there."""
    direction = torch.linspace(-1, 1, x.numel(), dtype=x.dtype).reshape(x.shape)
    slopes = []
    delta = None if frozen is None else frozen - x.detach()
    with torch.no_grad():
        for step in (STEP, STEP / 4):
            ends = []
            for sign in (1, -1):
                moved = x.detach() + sign * step * direction
                held = None if delta is None else moved + delta
                whole = moved * moved
                if held is not None:
                    ends.append(_used(whole, held))
                else:
                    ends.append(_out_of_place(moved, method, route, None))
            slopes.append(float(ends[0] - ends[1]) / (2 * step))
    along = float((gradient * direction).sum())
    size = max(1.0, abs(along))
    if (
        method.name in NO_DERIVATIVE
        or not all(map(_is_finite, (*slopes, along)))
        or abs(slopes[0] - slopes[1]) > 1e-4 * size
    ):
        return None
    return abs(slopes[1] - along) <= 1e-3 * size


def _is_finite(number: float) -> bool:
    return number == number and abs(number) < 1e8


def test_gradients_are_those_of_the_out_of_place_twin(capsys: pytest.CaptureFixture[str]) -> None:
    counts: Counter[str] = Counter()
    covered: set[str] = set()
    wrong: list[str] = []
    for name in names():
        for title, method, x, frozen, twin in _cases(name):
            route = ROUTES[title]
            with tensafe.safe_inplace():
                ours = _gradient(_in_place(x, method, route), x)
            counts[title] += 1
            covered.add(name)
            if not torch.allclose(ours, twin, rtol=1e-12, atol=1e-12, equal_nan=True):
                wrong.append(f"{name} {title} {tuple(x.shape)} {method.args}: {ours} is not {twin}")
            if sum(counts.values()) % 2 == 0 and route.recorded:
                agrees = _follows_finite_differences(x, method, route, frozen, ours)
                counts["finite differences"] += agrees is not None
                if agrees is False:
                    wrong.append(f"{name} {title} {tuple(x.shape)} {method.args}: not the slope")
    with capsys.disabled():
        total = sum(count for title, count in counts.items() if title in ROUTES)
        print(f"\n{total} cases of {len(covered)} in-place methods {dict(counts)}")
    assert not wrong, "\n".join(wrong[:20])
    assert len(covered) > 120
    assert min(counts[title] for title in ROUTES) > 80


def test_the_comparison_can_fail() -> None:
    """Under hooks that keep the live tensor, most of the same cases are wrong."""
    differ = cases = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("mul_", "exp_", "zero_", "sigmoid_"):
            for title, method, x, _, twin in _cases(name):
                with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
                    live = _gradient(_in_place(x, method, ROUTES[title]), x)
                cases += 1
                differ += not torch.allclose(live, twin, rtol=1e-12, atol=1e-12, equal_nan=True)
    assert differ > cases / 2


def test_methods_that_grow_their_tensor_are_known() -> None:
    """A copy-on-write storage does not survive a resize: these methods end its lazy life before."""
    growing = set()
    for name in names():
        for method in methods(name):
            tensor = method.value.clone()
            before = tensor.untyped_storage().nbytes()
            method.on(tensor)
            if tensor.untyped_storage().nbytes() > before:
                growing.add(name)
    assert growing <= set(GROWING)
