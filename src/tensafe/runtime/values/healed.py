"""`tensafe run --heal`: the engine's hooks look, those of value semantics give what backward reads."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import saved_tensors_hooks

from tensafe.runtime.patches import Patches
from tensafe.runtime.values.composed import Filling, enter_composed
from tensafe.runtime.values.hooks import Hooks, make_hooks
from tensafe.runtime.values.pointers import Pointers


class _Both(NamedTuple):
    seen: Any  # by the engine
    value: Any


class Healed:
    """A part of the engine: the hooks of a healed program, and what must be wrapped for them."""

    def __init__(self, looking: Hooks) -> None:
        self.hooks = _healed(looking)

    def install(self, patches: Patches) -> None:
        Pointers().install(patches)
        Filling().install(patches)
        patches.wrap(saved_tensors_hooks, "__enter__", self._their_hooks)

    def _their_hooks(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def enter(self_: Any) -> Any:
            return enter_composed(call, self_, contextlib.nullcontext)

        return functools.update_wrapper(enter, call)


def _healed(looking: Hooks) -> Hooks:
    look, compare = looking
    keep, give = make_hooks()

    def pack(tensor: torch.Tensor) -> _Both:
        return _Both(look(tensor), keep(tensor))

    def unpack(both: _Both) -> torch.Tensor:
        compare(both.seen)
        return give(both.value)

    return pack, unpack
