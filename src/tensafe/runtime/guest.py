"""Manners: threads are watched too, torch.func and the program's own hooks work, forks go their own way."""

from __future__ import annotations

import functools
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tensafe.runtime.graphs.under_hooks import Compose, Hooks, swapped, under
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import INTERNAL, user_frame
from tensafe.runtime.scripted import finding_originals

_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep


class _OfThread(threading.local):
    """What one thread has: our hooks, how many others above them, and which dispatch modes lifted ours."""

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = self.plain = hooks  # those that are pushed, and those without any of the program
        self.pushed = False
        self.others = 0
        self.lifted: list[bool] = []
        self.without = False  # whether they are off because the program disabled all hooks


class Guest:
    """Holds the saved-tensor hooks of each thread and steps aside where PyTorch allows none."""

    def __init__(
        self,
        hooks: Hooks,
        not_checked: Callable[[str, str], None],
        forget: Callable[[Any], None],
        forks_followed: bool,
        compose: Compose | None,
    ) -> None:
        self._compose = compose
        self._forget = forget
        self._not_checked = not_checked
        self._forks_followed = forks_followed
        self._active = False
        self._pid = os.getpid()
        self._own = _OfThread(hooks)
        self._compiled_before = 0

    def install(self, patches: Patches) -> None:
        patches.wrap(torch._C._autograd, "_saved_tensors_hooks_disable", self._disable)
        patches.wrap(torch._C._autograd, "_saved_tensors_hooks_enable", self._enable)
        patches.wrap(torch.autograd.graph.saved_tensors_hooks, "__enter__", self._own_hooks)
        patches.wrap(torch.autograd.graph.saved_tensors_hooks, "__exit__", self._own_hooks_end)
        mode = torch.utils._python_dispatch.TorchDispatchMode
        patches.wrap(mode, "__enter__", self._enter_mode)
        patches.wrap(mode, "__exit__", self._exit_mode)
        patches.wrap(threading.Thread, "_bootstrap_inner", self._thread)
        patches.wrap(warnings, "_showwarnmsg", self._warning)
        for name in ("walk_tb", "_walk_tb_with_full_positions"):
            patches.wrap(traceback, name, self._walk)
        patches.wrap(torch.utils, "swap_tensors", self._swap)
        patches.wrap(torch.utils.checkpoint, "_current_user_saved_tensors_hooks", self._their_own)
        patches.wrap(torch.jit._builtins, "_find_builtin", finding_originals)

    def enter(self, hooks: bool) -> None:
        self._active = True
        self._compiled_before = _compiled_graphs()
        if hooks:
            self._begin()
        os.register_at_fork(after_in_parent=self._forked, after_in_child=self._in_child)

    def leave(self) -> bool:
        left = self.abandon()
        self._look_for_compiled()
        return left

    def abandon(self) -> bool:
        """Leave without a word; hooks of ours that lie under the program's own stay, and still work."""
        on_top = self._active and self._on_top()
        if on_top:
            self._pop()
        self._active = False
        return on_top

    def _on_top(self) -> bool:
        """Whether this thread's innermost hooks are ours; before torch 2.7 only by counting the others."""
        if hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"):
            top: Any = torch._C._autograd._top_saved_tensors_default_hooks(True)
            return top is not None and top[0] is self._own.hooks[0]
        return bool(self._own.pushed) and not self._own.others

    def _begin(self) -> None:
        """Push hooks; where the program's own are there already, theirs over ours."""
        if torch._C._autograd._saved_tensors_hooks_get_disabled_error_message() is not None:
            self._not_checked("saved tensors", "begun inside torch.func, where PyTorch allows no hooks")
            return
        top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: None)(True)
        if top is not None and self._compose is not None:
            self._own.hooks = self._compose(top)
        self._push()

    def _push(self) -> None:
        torch._C._autograd._push_saved_tensors_default_hooks(*self._own.hooks)
        self._own.pushed = True

    def _pop(self) -> None:
        torch._C._autograd._pop_saved_tensors_default_hooks()
        self._own.pushed = False

    def _lift(self, what: str, why: str) -> bool:
        """Take this thread's hooks off when they are the innermost; True when `_lower` must put them back."""
        lifted = self._active and self._on_top()
        if lifted:
            if what:
                self._not_checked(what, why)
            self._pop()
        return lifted

    def _lower(self) -> None:
        if self._active:
            self._push()

    def _enter_mode(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A dispatch mode of the program would see the operations of our hooks: they are lifted meanwhile."""

        def enter(self_: Any) -> Any:
            result = call(self_)
            direct = not INTERNAL[sys._getframe(1).f_code.co_filename]
            what = "code inside a TorchDispatchMode" if direct else ""
            lifted = self._lift(what, "the mode would see what the hooks do")
            self._own.lifted.append(lifted)
            return result

        return functools.update_wrapper(enter, call)

    def _exit_mode(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def leave(self_: Any, *args: Any) -> Any:
            result = call(self_, *args)
            if self._own.lifted and self._own.lifted.pop():
                self._lower()
            return result

        return functools.update_wrapper(leave, call)

    def _disable(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.func` refuses to run under any hooks: ours are lifted for that time."""

        def _saved_tensors_hooks_disable(*args: Any) -> Any:
            if self._lift("torch.func and vmap", "PyTorch allows no saved-tensor hooks inside them"):
                self._own.without = True
            return call(*args)

        return functools.update_wrapper(_saved_tensors_hooks_disable, call)

    def _enable(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def _saved_tensors_hooks_enable() -> Any:
            result = call()
            if self._own.without:
                self._own.without = False
                self._lower()
            return result

        return functools.update_wrapper(_saved_tensors_hooks_enable, call)

    def _their_own(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """From 2.14 on, selective checkpointing looks for hooks of the program: ours are none."""

        def _current_user_saved_tensors_hooks() -> Any:
            found: Any = torch._C._autograd._top_saved_tensors_default_hooks(False)
            while found is not None:
                pack = under(found[0])
                if not getattr(pack, "_checkpoint_internal", False):
                    return None if pack is self._own.plain[0] else found
                found = pack._user_hooks
            return None

        return functools.update_wrapper(_current_user_saved_tensors_hooks, call)

    def _own_hooks(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def enter(self_: Any) -> Any:
            self._own.others += 1
            if not self._active or self._compose is None:
                return call(self_)
            with swapped(self_, self._compose):
                return call(self_)

        return functools.update_wrapper(enter, call)

    def _own_hooks_end(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def leave(self_: Any, *args: Any) -> Any:
            self._own.others = max(0, self._own.others - 1)
            return call(self_, *args)

        return functools.update_wrapper(leave, call)

    def _thread(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def bootstrap(self_: Any) -> Any:
            if not self._active or os.getpid() != self._pid:
                return call(self_)
            self._push()
            try:
                return call(self_)
            finally:
                if self._on_top():  # a thread that ends with hooks drops them too late, after the interpreter
                    self._pop()

        return functools.update_wrapper(bootstrap, call)

    def _walk(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Tracebacks that the program itself prints show no frame of ours, either."""

        def walk(tb: Any) -> Iterator[Any]:
            entries = list(call(tb))
            shown = [entry for entry in entries if not entry[0].f_code.co_filename.startswith(_OURS)]
            yield from shown or entries  # who asks for one entry of ours gets it

        return functools.update_wrapper(walk, call)

    def _swap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`swap_tensors` refuses tensors with weak references: ours are dropped first."""

        def swap_tensors(one: Any, other: Any) -> Any:
            self._forget(one)
            self._forget(other)
            return call(one, other)

        return functools.update_wrapper(swap_tensors, call)

    def _warning(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A warning of a wrapped call belongs to the line that called it, and is shown there once."""

        def show(message: Any) -> None:
            frame = (
                user_frame(2) if INTERNAL[message.filename] and message.filename.startswith(_OURS) else None
            )
            if frame is not None:
                for name, module in list(sys.modules.items()):
                    if name.startswith("tensafe."):
                        vars(module).pop("__warningregistry__", None)
                shown = frame.f_globals.setdefault("__warningregistry__", {})
                key = (str(message.message), message.category, frame.f_lineno)
                if shown.get(key) and not _shows_always(message.category):
                    return
                shown[key] = True
                message.filename, message.lineno = frame.f_code.co_filename, frame.f_lineno
            call(message)

        return functools.update_wrapper(show, call)

    def _forked(self) -> None:
        if self._active and not self._forks_followed:
            self._not_checked("forked processes", "what a worker process does is not watched")

    def _in_child(self) -> None:
        self.abandon()

    def _look_for_compiled(self) -> None:
        if _compiled_graphs() > self._compiled_before:
            self._not_checked("torch.compile regions", "writes inside compiled code are not named")


def _compiled_graphs() -> int:
    """How many graphs `torch.compile` has made in this process."""
    utils = sys.modules.get("torch._dynamo.utils")
    return int(utils.counters["stats"]["unique_graphs"]) if utils is not None else 0


def _shows_always(category: type[Warning]) -> bool:
    """Whether the program asked for every warning of this category (`-W always`)."""
    return any(
        action == "always" and issubclass(category, wanted) for action, _, wanted, _, _ in warnings.filters
    )
