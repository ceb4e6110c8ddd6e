"""`safe_inplace` is entered by `with`, by decorators, by threads, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import tensafe
from runtime.slopes import is_clean, slope, spoiled

Tensor = torch.Tensor


def test_threads_started_inside_are_protected(w: Tensor) -> None:
    results: list[Tensor] = []
    with tensafe.safe_inplace():
        thread = threading.Thread(target=lambda: results.append(spoiled(w)))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            results.append(pool.submit(spoiled, w).result())
    outside = threading.Thread(target=lambda: results.append(spoiled(w)))
    outside.start()
    outside.join()
    right = [torch.equal(result, slope(w)) for result in results]
    assert right == [True, True, False]


def test_a_thread_that_outlives_the_context_is_as_before(w: Tensor) -> None:
    from torch.func import grad as func_grad

    closed, results = threading.Event(), []

    def work() -> None:
        closed.wait()
        results.append(spoiled(w))
        results.append(func_grad(lambda x: x.exp().sum())(w.detach()))

    with tensafe.safe_inplace():
        thread = threading.Thread(target=work)
        thread.start()
    closed.set()
    thread.join()
    assert torch.equal(results[0], torch.zeros_like(w))
    assert torch.equal(results[1], slope(w))
    assert is_clean()


def test_decorated_functions(w: Tensor) -> None:
    @tensafe.safe_inplace()
    def one(w: Tensor) -> Tensor:
        return spoiled(w)

    @tensafe.safe_inplace
    def other(w: Tensor) -> Tensor:
        """Its page"""
        return one(w)

    assert torch.equal(one(w), slope(w))
    assert torch.equal(other(w), slope(w))
    assert other.__doc__ == "Its page"
    assert is_clean()
    for wrong in (nn.Linear, nn.Linear(1, 1), 3):
        with pytest.raises(tensafe.TensafeError, match="decorates functions"):
            tensafe.safe_inplace(wrong)  # type: ignore[arg-type]


def test_generators_are_protected_while_they_run(w: Tensor) -> None:
    @tensafe.safe_inplace()
    def steps() -> Iterator[Tensor]:
        try:
            yield spoiled(w)
        except ValueError:
            yield spoiled(w) + 1

    generator = steps()
    assert torch.equal(next(generator), slope(w))
    assert is_clean()
    assert torch.equal(generator.throw(ValueError()), slope(w) + 1)  # type: ignore[attr-defined]
    assert list(generator) == []
    assert is_clean()


def test_coroutines_are_protected_while_they_run(w: Tensor) -> None:
    order: list[str] = []

    @tensafe.safe_inplace()
    async def protected() -> Tensor:
        order.append("in")
        await asyncio.sleep(0)
        order.append("again")
        return spoiled(w)

    @tensafe.safe_inplace()
    async def items() -> AsyncIterator[Tensor]:
        yield spoiled(w)
        await asyncio.sleep(0)
        yield spoiled(w)

    async def main() -> list[Tensor]:
        task = asyncio.create_task(protected())
        await asyncio.sleep(0)
        assert is_clean(), "suspended"
        return [await task, *[item async for item in items()]]

    assert all(torch.equal(result, slope(w)) for result in asyncio.run(main()))
    assert order == ["in", "again"]
    assert is_clean()


def test_entered_again(w: Tensor) -> None:
    context = tensafe.safe_inplace()
    with context, context:
        with tensafe.safe_inplace():
            pass
        assert torch.equal(spoiled(w), slope(w))
    assert is_clean()
    with pytest.raises(KeyError), context:
        raise KeyError
    assert is_clean()
