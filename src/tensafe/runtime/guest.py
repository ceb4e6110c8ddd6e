"""Manners: threads get the hooks too, torch.func and the program's own hooks keep working, forked children are left alone."""
from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tensafe.runtime.frames import site_of, user_place
from tensafe.runtime.patches import Patches

Hooks = tuple[Callable[[torch.Tensor], Any], Callable[[Any], torch.Tensor]]


class Guest:
    """Holds the saved-tensor hooks of each thread and steps aside where PyTorch allows none."""

    def __init__(self, hooks: Hooks, not_checked: Callable[[str, str], None]) -> None:
        self._hooks = hooks
        self._not_checked = not_checked
        self._active = False
        self._pid = os.getpid()

    def install(self, patches: Patches) -> None:
        patches.wrap(torch.autograd.graph, "disable_saved_tensors_hooks", self._disable)
        patches.wrap(torch.autograd.graph.saved_tensors_hooks, "__enter__", self._own_hooks)
        patches.wrap(threading.Thread, "_bootstrap_inner", self._thread)
        patches.wrap(torch.jit._builtins, "_find_builtin", self._find_builtin)

    def enter(self) -> None:
        self._active = True
        torch._C._autograd._push_saved_tensors_default_hooks(*self._hooks)
        os.register_at_fork(after_in_parent=self._forked, after_in_child=self._in_child)

    def leave(self) -> None:
        if self._active and self._on_top():
            torch._C._autograd._pop_saved_tensors_default_hooks()
        self._active = False
        self._look_for_compiled()

    def _on_top(self) -> bool:
        top = torch._C._autograd._top_saved_tensors_default_hooks(True)
        return top is not None and top[0] is self._hooks[0]

    def _disable(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.func` refuses to run under any hooks: ours are lifted for that time, and the report says so."""

        @contextlib.contextmanager
        def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
            lifted = self._active and self._on_top()
            if lifted:
                self._not_checked("torch.func and vmap", "PyTorch allows no saved-tensor hooks inside them")
                torch._C._autograd._pop_saved_tensors_default_hooks()
            try:
                with call(error_message):
                    yield
            finally:
                if lifted:
                    torch._C._autograd._push_saved_tensors_default_hooks(*self._hooks)

        return functools.update_wrapper(disable_saved_tensors_hooks, call)

    def _own_hooks(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def enter(self_: Any) -> Any:
            site = site_of(user_place(2))
            where = f" (first at {os.path.basename(site.path)}:{site.line})" if site else ""
            if self._active:
                why = f"the program's own hooks, or activation checkpointing, keep them{where}"
                self._not_checked("tensors saved under other saved-tensor hooks", why)
            return call(self_)

        return functools.update_wrapper(enter, call)

    def _thread(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def bootstrap(self_: Any) -> Any:
            if self._active and os.getpid() == self._pid:
                torch._C._autograd._push_saved_tensors_default_hooks(*self._hooks)
            return call(self_)

        return functools.update_wrapper(bootstrap, call)

    def _find_builtin(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """TorchScript looks functions up by identity: a wrapped one stands for its original."""

        def find_builtin(function: Any) -> Any:
            return call(getattr(function, "__wrapped__", None) or function) or call(function)

        return functools.update_wrapper(find_builtin, call)

    def _forked(self) -> None:
        if self._active:
            self._not_checked("forked processes", "what a worker process does is not watched")

    def _in_child(self) -> None:
        if self._active:
            self._active = False
            if self._on_top():
                torch._C._autograd._pop_saved_tensors_default_hooks()

    def _look_for_compiled(self) -> None:
        import sys

        utils = sys.modules.get("torch._dynamo.utils")
        if utils is not None and utils.counters["frames"]["ok"]:
            self._not_checked("torch.compile regions", "writes inside compiled code are not named")
