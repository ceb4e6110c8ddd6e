"""Nothing of the program lives longer because it is watched: what reference counts free is freed as early."""

from __future__ import annotations

import gc
import textwrap
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import tensafe

SETUP = """
import copy
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)


class Marker:
    pass
"""

PROGRAMS = {
    "a training step": """
        def step(see):
            model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.BatchNorm1d(8), nn.Linear(8, 1))
            optimizer = torch.optim.AdamW(model.parameters())
            batch, target = torch.randn(6, 4), torch.randn(6, 1)
            for _ in range(3):
                optimizer.zero_grad()
                out = model(batch)
                loss = (out - target).pow(2).mean()
                loss.backward()
                optimizer.step()
            see(model, optimizer, batch, target, out, loss, *model.parameters())
            see(*(p.grad for p in model.parameters()), *model, Marker())
            del model, optimizer, batch, target, out, loss
        """,
    "views, writes and arrays": """
        def step(see):
            w = torch.ones(4, requires_grad=True)
            x = torch.randn(4, 4)
            row, data = x[1], x.data
            row.mul_(2)
            data[0] = 3
            x[x > 0].zero_()
            array = x.numpy()
            array += 1
            shared = torch.from_numpy(np.ones(3))
            shared.add_(1)
            y = (w * x).sum()
            see(w, x, row, data, shared, y, x.untyped_storage(), array)
            y.backward()
        """,
    "snapshots and copies": """
        def step(see):
            model = nn.Linear(3, 3)
            best = model.state_dict()
            kept = list(model.parameters())
            twin = copy.deepcopy(model)
            model.load_state_dict(twin.state_dict())
            clone = kept[0].detach().clone()
            moved = kept[0].detach().cpu()
            with torch.no_grad():
                kept[0].add_(1)
            see(model, twin, clone, moved, *best.values(), *kept)
        """,
    "a backward that fails": """
        def step(see):
            def failing(x):
                marker = Marker()
                see(marker)
                y = x.exp()
                y.add_(1)
                y.sum().backward()
            x = torch.ones(3, requires_grad=True)
            try:
                failing(x)
            except RuntimeError as error:
                see(x)
                del error
        """,
    "a write that is refused": """
        def step(see):
            def failing(x):
                marker = Marker()
                see(marker)
                x.add_(1)
            x = torch.ones(3, requires_grad=True)
            try:
                failing(x)
            except RuntimeError:
                see(x)
        """,
    "graphs kept and dropped": """
        def step(see):
            model = nn.Linear(3, 1)
            losses = []
            for _ in range(6):
                loss = model(torch.randn(2, 3)).sum()
                loss.backward(retain_graph=True)
                losses.append(loss)
                see(loss)
            see(model)
        """,
    "hooks, custom functions, checkpoints": """
        from torch.utils.checkpoint import checkpoint

        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                return gradient * 2

        def step(see):
            model = nn.Linear(3, 3)
            x = torch.randn(2, 3, requires_grad=True)
            x.register_hook(lambda gradient: gradient * 2)
            marker = Marker()
            model.register_forward_hook(lambda *args, marker=marker: None)
            for reentrant in (True, False):
                checkpoint(model, Double.apply(x), use_reentrant=reentrant).sum().backward()
            see(model, x, marker, x.grad, *model.parameters())
        """,
    "threads and generators": """
        import threading

        def step(see):
            def work():
                x = torch.ones(3, requires_grad=True)
                y = (x * x).sum()
                y.backward()
                see(x, y, x.grad)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            def batches():
                for _ in range(3):
                    batch = torch.ones(3)
                    see(batch)
                    yield batch
            for batch in batches():
                batch.add_(1)
            see(thread)
        """,
}


@pytest.fixture
def _counted_only() -> Iterator[None]:
    """Only reference counts free anything."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _alive(step: Any) -> list[int]:
    """Which of the objects that the program showed are still there after it."""
    refs: list[weakref.ref[Any]] = []
    step(lambda *shown: refs.extend(weakref.ref(item) for item in shown if item is not None))
    alive = [number for number, ref in enumerate(refs) if ref() is not None]
    assert len(refs) > len(alive)
    return alive


@pytest.mark.usefixtures("_counted_only")
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_dies_plainly_dies_watched(name: str) -> None:
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(compile(SETUP + textwrap.dedent(PROGRAMS[name]), f"<string {name}>", "exec"), namespace)
    _alive(namespace["step"])  # what torch makes once, such as an optimizer's lazy imports, it makes here
    plain = _alive(namespace["step"])
    with tensafe.watching() as seen:
        watched = _alive(namespace["step"])
        gc.collect()
        left = _alive(namespace["step"])
    assert watched == left == plain
    assert [item for item in seen.not_checked if "failed" in item.why] == []


def test_the_comparison_can_fail() -> None:
    kept: list[Any] = []

    def step(see: Any) -> None:
        x, y = torch.ones(1), torch.ones(1)
        kept.append(x)
        see(x, y)

    assert _alive(step) == [0]
