"""Cuts that only the call shows: custom Functions, reentrant checkpointing, gradients written to `.data`."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_compiling

from tensafe.runtime import modes
from tensafe.runtime.graphs import graph
from tensafe.runtime.graphs.cuts import Cuts, Strength
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import user_place
from tensafe.runtime.storages.ledger import Write, ledger_of
from tensafe.runtime.storages.weak import WeakFacts

if TYPE_CHECKING:
    from tensafe.runtime.engine import Guarded

Before = list[tuple[torch.Tensor, int, Any]]


class Functions:
    """Wraps `torch.autograd.Function.apply` and `Parameter.__deepcopy__`."""

    def __init__(self, cuts: Cuts, guarded: Guarded) -> None:
        self._cuts = cuts
        self._guarded = guarded
        self._originals: WeakFacts[Any] = WeakFacts()

    def install(self, patches: Patches) -> None:
        patches.replace(torch.autograd.Function, "apply", classmethod(self._apply()))
        patches.wrap(torch.nn.Parameter, "__deepcopy__", self._deepcopy)

    def _apply(self) -> Callable[..., Any]:
        own: Any = torch.autograd.Function.__dict__["apply"]
        call: Callable[..., Any] = getattr(own, "__func__", own)  # from 2.14 on written in C
        reentrant = self._guarded("reentrant checkpointing", self._reentrant)
        applied = self._guarded("a custom Function", self._applied)

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not torch.is_grad_enabled() or modes.asked():
                return call(cls, *args, **kwargs)
            if cls.__name__ == "CheckpointFunction":
                reentrant(args, user_place(2))
                return call(cls, *args, **kwargs)
            before = [(item, item._version, item.grad_fn) for item in args if _is_watched(item)]
            result = call(cls, *args, **kwargs)
            if before:
                applied(cls, args, before, result)
            return result

        return functools.update_wrapper(apply, call)

    def _applied(self, cls: Any, args: tuple[Any, ...], before: Before, result: Any) -> None:
        """An input that forward changed in place must have become an output, or its history is wrong.

        If a backward goes through the Function's own node, its gradients are the author's business.
        """
        nodes = [item.grad_fn for item in _tensors(result) if item.grad_fn is not None]
        for tensor, version, node in before:
            if tensor._version == version or tensor.grad_fn is not node or tensor.is_leaf:
                continue
            write = ledger_of(tensor).write
            if write is None or write.place is None:
                continue
            others = [item for item in args if isinstance(item, torch.Tensor) and item is not tensor]
            known = {id(leaf) for leaf in graph.leaves([tensor])}
            behind = [leaf for leaf in graph.leaves(others) if id(leaf) not in known]
            note = f"changed in {cls.__name__}.forward without ctx.mark_dirty"
            self._cuts.cut(
                write.op, (), Strength.CERTAIN, place=write.place, leaves=behind, note=note, unless=nodes
            )

    def _reentrant(self, args: tuple[Any, ...], place: Any) -> None:
        if any(isinstance(item, torch.Tensor) and item.requires_grad for item in args[2:]):
            return
        behind = graph.parameters_behind(args[0])
        note = "reentrant checkpointing records nothing for inputs without gradient"
        op = "torch.utils.checkpoint.checkpoint"
        self._cuts.cut(op, (), Strength.CERTAIN, place=place, leaves=behind, note=note)

    def forget(self, tensor: torch.Tensor) -> None:
        """Hold no weak reference to this tensor any more."""
        self._originals.forget(tensor)
        for copy, original in list(self._originals.items()):
            if original() is tensor:
                self._originals.forget(copy)

    def graph_dropped(self, target: torch.Tensor, write: Write, args: tuple[Any, ...]) -> None:
        """A gradient made with create_graph=True is written into a copied parameter: its graph ends there."""
        for item in args:
            if not isinstance(item, torch.Tensor) or item.grad_fn is None or write.place is None:
                continue
            originals = [self._originals.get(leaf) for leaf in graph.leaves([item])]
            behind = [leaf for ref in originals if ref is not None and (leaf := ref()) is not None]
            if behind:
                note = "updates the copy, so that its original gets no gradient in spite of create_graph=True"
                self._cuts.cut(write.op, (), Strength.CERTAIN, place=write.place, leaves=behind, note=note)

    def _deepcopy(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def put(copy: Any, own: Any) -> None:
            self._originals.put(copy, weakref.ref(own))

        remember = self._guarded("a copied parameter", put)

        def deepcopy(self: Any, memo: Any) -> Any:
            copy = call(self, memo)
            if not is_compiling() and copy is not self:
                remember(copy, self)
            return copy

        return functools.update_wrapper(deepcopy, call)


def _tensors(result: Any) -> list[torch.Tensor]:
    items = result if isinstance(result, tuple) else (result,)
    return [item for item in items if isinstance(item, torch.Tensor)]


def _is_watched(item: Any) -> bool:
    return type(item) in PLAIN and item.requires_grad and not item.is_inference()
