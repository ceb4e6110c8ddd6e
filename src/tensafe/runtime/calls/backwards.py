"""Around every backward: what it reached, why it was refused, and gradients that carry a graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from tensafe.runtime.graphs.cuts import Cuts
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import user_place
from tensafe.runtime.storages.weak import WeakFacts

if TYPE_CHECKING:
    from tensafe.runtime.engine import Guarded


class Backwards:
    """Wraps the one Python function through which `backward()` and `autograd.grad()` enter the engine."""

    def __init__(
        self, cuts: Cuts, guarded: Guarded, each: Callable[..., None], begins: Callable[[], None]
    ) -> None:
        self._cuts = cuts
        self._begins = begins
        self._guarded = guarded
        self._each = each
        self.graph_values: WeakFacts[int] = WeakFacts()

    def install(self, patches: Patches) -> None:
        patches.wrap(torch.autograd, "_engine_run_backward", self._run)

    def _run(self, call: Callable[..., Any]) -> Callable[..., Any]:
        finished = self._guarded("a backward", self._finished)
        refused = self._guarded("a refused backward", self._refused)
        begins = self._guarded("a backward", self._begins)

        def run_backward(roots: Any, *args: Any, **kwargs: Any) -> Any:
            begins()
            try:
                result = call(roots, *args, **kwargs)
            except RuntimeError as error:
                refused(roots, error, user_place(2))
                raise
            finished(roots, args, result, user_place(2))
            return result

        return functools.update_wrapper(run_backward, call)

    def _finished(self, roots: Any, args: tuple[Any, ...], result: Any, place: Any) -> None:
        """`args` are grad_tensors, retain_graph, create_graph, inputs (torch/autograd/graph.py)."""
        inputs = [item for item in (args[3] if len(args) > 3 else ()) or () if isinstance(item, torch.Tensor)]
        tensors = _tensors(roots)
        self._cuts.backward(tensors, inputs, place)
        self._each("backward", tensors, bool(len(args) > 1 and args[1]), place)
        if len(args) > 2 and args[2] and isinstance(result, tuple):
            for gradient in result:
                if isinstance(gradient, torch.Tensor) and gradient.grad_fn is not None:
                    self.graph_values.put(gradient, 0)

    def _refused(self, roots: Any, error: RuntimeError, place: Any) -> None:
        self._cuts.refused(error, place)
        self._each("backward_refused", _tensors(roots), error, place)


def _tensors(roots: Any) -> list[torch.Tensor]:
    return [root for root in roots if isinstance(root, torch.Tensor)]
