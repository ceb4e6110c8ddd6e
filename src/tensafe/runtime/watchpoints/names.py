"""`tensafe run --watch NAME`: looks for names of the program until they exist, as it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tensafe.runtime.calls.writers import AUGMENTED, _method_names
from tensafe.runtime.patches import Patches
from tensafe.runtime.watchpoints.points import points

Find = Callable[[str], Any]
"""The object that a dotted name means in the program's frames, None while there is none."""


class Names:
    """Looks at module calls, backwards, optimizer steps and in-place methods; nothing is left once all are
    found.
    """

    def __init__(self, names: list[str], find: Find, found: Callable[[str, Any], bool]) -> None:
        self.missing = list(names)
        self._find = find
        self._found = found
        self._patches = Patches()
        self._handles: list[Any] = []
        self._looking = False

    def start(self) -> None:
        self._handles = [
            register_module_forward_pre_hook(lambda *_: self.look()),
            register_optimizer_step_pre_hook(lambda *_: self.look()),
        ]
        self._patches.wrap(torch.autograd, "backward", self._before)
        for name in _method_names():
            label = f"Tensor.{AUGMENTED.get(name, name)}"
            wrap = functools.partial(self._before_write, label)
            self._patches.wrap(torch.Tensor, name, wrap, innermost=True)

    def stop(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._patches.undo()

    def look(self) -> None:
        """Look for what is still missing."""
        if self._looking or not self.missing:
            return
        self._looking = True
        try:
            for name in list(self.missing):
                value = self._find(name)
                if value is not None and self._found(name, value):
                    self.missing.remove(name)
            if not self.missing:
                self.stop()
        finally:
            self._looking = False

    def _before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def looking(*args: Any, **kwargs: Any) -> Any:
            self.look()
            return call(*args, **kwargs)

        return functools.update_wrapper(looking, call)

    def _before_write(self, label: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def looking(self_: Any, *args: Any, **kwargs: Any) -> Any:
            missing = len(self.missing)
            self.look()
            if len(self.missing) < missing:  # this very call may write what it found
                return points.around(label, call, (self_,), (self_, *args), kwargs)
            return call(self_, *args, **kwargs)

        return functools.update_wrapper(looking, call)
