"""`safe_inplace()`: in-place code gets the gradients of its out-of-place twin."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar, overload

import torch
from torch.autograd.graph import saved_tensors_hooks

from tensafe.errors import TensafeError
from tensafe.runtime.patches import Patches
from tensafe.runtime.scripted import finding_originals
from tensafe.runtime.values.composed import Filling, composed, enter_composed
from tensafe.runtime.values.driven import drive
from tensafe.runtime.values.hooks import Checked, Hooks, make_hooks
from tensafe.runtime.values.pointers import Pointers
from tensafe.uncompiled import leave_uncompiled

Function = TypeVar("Function", bound=Callable[..., Any])

_IN_FUNC = (
    "safe_inplace() cannot protect code inside torch.func transforms or vmap, where PyTorch allows no "
    "saved-tensor hooks: enter it around the transform or not at all (inside, PyTorch's own check holds)"
)


@overload
def safe_inplace() -> SafeInplace: ...


@overload
def safe_inplace(function: Function) -> Function: ...


def safe_inplace(function: Any = None) -> Any:
    """Autograd with value semantics: backward uses the values that tensors had when they were saved.

    A context manager and a decorator; in-place writes inside it, through views, `.data`, the storage, foreach
    and fused kernels, no longer stop a backward nor make its gradient wrong.

    Examples:
        >>> with tensafe.safe_inplace():
        ...     gate = weight.sigmoid()
        ...     gate *= 2
        ...     gate.sum().backward()

    A write costs one copy of a storage that a pending backward still needs, and nothing else does. PyTorch
    still refuses in-place operations on leaves that require grad and on views that it cannot follow.

    Threads that are started inside are protected too, unless they are daemons. Not protected: raw pointers
    and DLPack capsules taken before the context (NumPy arrays are), what a custom Function stashes as
    `ctx.x = x`, what `torch.func` differentiates (PyTorch's own check holds there), values outside autograd.
    `out=` may not resize a tensor that a backward still needs.
    """
    return SafeInplace() if function is None else SafeInplace()(function)


class SafeInplace:
    """What `safe_inplace()` returns; can be entered again and in several threads."""

    def __enter__(self) -> None:
        _enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _leave()

    def __call__(self, function: Any) -> Any:
        if inspect.isclass(function) or not callable(function) or isinstance(function, torch.nn.Module):
            what = function.__name__ if inspect.isclass(function) else type(function).__name__
            raise TensafeError(f"safe_inplace() decorates functions and methods, not {what}")
        return drive(function, SafeInplace)


class _Scope:
    """One outermost `with`; the threads that were started in it are protected while it is open."""

    def __init__(self) -> None:
        self.open = True


class _Here(threading.local):
    """What one thread has."""

    def __init__(self) -> None:
        self.scope: _Scope | None = None
        self.hooks = OURS
        self.pushed: list[bool] = []  # for each entry, whether it pushed hooks
        self.others = 0  # how many pairs of the program lie above; before torch 2.7 nothing else tells


OURS: Hooks = make_hooks()
_here = _Here()
_autograd: Any = torch._C._autograd
_LIFTED = ("tensafe.runtime.values.hooks", __name__)
_PROTECTED = (*_LIFTED, "tensafe.runtime.values.composed")


def _enter() -> None:
    if _autograd._saved_tensors_hooks_get_disabled_error_message() is not None:
        raise TensafeError(_IN_FUNC)
    here = _here
    module = _innermost_module()
    if here.pushed and module.startswith(_PROTECTED):
        here.pushed.append(False)
        return
    if not here.pushed:
        _installed.take()
        here.scope = _Scope()
    pair = here.hooks
    if module and not module.startswith("tensafe."):
        pair = composed(_innermost(), SafeInplace, recomputes=True)
    _autograd._push_saved_tensors_default_hooks(*pair)
    here.pushed.append(True)


def _leave() -> None:
    here = _here
    if here.pushed.pop():
        _autograd._pop_saved_tensors_default_hooks()
    if not here.pushed and here.scope is not None:
        here.scope.open = False
        here.scope = None
        _installed.give_back()


def _innermost() -> Any:
    return _autograd._top_saved_tensors_default_hooks(True)


def _innermost_module() -> str:
    """The module of this thread's innermost pack hook, "" where there is none."""
    if hasattr(_autograd, "_top_saved_tensors_default_hooks"):
        pair = _innermost()
        return "" if pair is None else str(getattr(pair[0], "__module__", None) or "?")
    if not _here.pushed:
        return ""
    return _PROTECTED[-1] if _here.others else _LIFTED[0]


def _run_protected(thread: Any, bootstrap: Callable[[], None], scope: _Scope) -> None:
    """The life of a thread that was started inside a scope: protected until the scope closes."""
    del thread._bootstrap_inner
    _here.hooks = _while_open(scope)
    _enter()
    try:
        bootstrap()
    finally:
        _leave()


def _while_open(scope: _Scope) -> Hooks:
    ours, unpack = OURS

    def pack(tensor: torch.Tensor) -> Any:
        if scope.open:
            return ours(tensor)
        return Checked(tensor if tensor.is_leaf else tensor.detach(), tensor._version)

    return pack, unpack


class Others:
    """What meets our hooks on the way: the program's own, `torch.func`, new threads."""

    def install(self, patches: Patches) -> None:
        patches.wrap(saved_tensors_hooks, "__enter__", self._their_hooks)
        patches.wrap(saved_tensors_hooks, "__exit__", self._their_hooks_end)
        patches.wrap(torch.autograd.graph, "disable_saved_tensors_hooks", self._disable)
        patches.wrap(threading.Thread, "start", self._start)
        patches.wrap(torch.jit._builtins, "_find_builtin", finding_originals)
        Filling().install(patches)

    def _their_hooks(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def enter(self_: Any) -> Any:
            if not _here.pushed:
                return call(self_)
            _here.others += 1
            return enter_composed(call, self_, SafeInplace)

        return functools.update_wrapper(enter, call)

    def _their_hooks_end(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def leave(self_: Any, *args: Any) -> Any:
            _here.others = max(0, _here.others - 1)
            return call(self_, *args)

        return functools.update_wrapper(leave, call)

    def _disable(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.func` refuses to run under any hooks: ours are lifted for that time."""

        @contextlib.contextmanager
        def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
            lifted = 0
            while _here.pushed and lifted < len(_here.pushed) and _innermost_module() in _LIFTED:
                _autograd._pop_saved_tensors_default_hooks()
                lifted += 1
            try:
                with call(error_message):
                    yield
            finally:
                for _ in range(lifted):
                    _autograd._push_saved_tensors_default_hooks(*_here.hooks)

        return functools.update_wrapper(disable_saved_tensors_hooks, call)

    def _start(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def start(self_: Any) -> Any:
            scope = _here.scope
            if scope is not None and not self_.daemon:  # which serves long after the scope, as tqdm's does
                bootstrap = self_._bootstrap_inner
                self_._bootstrap_inner = lambda: _run_protected(self_, bootstrap, scope)
            return call(self_)

        return functools.update_wrapper(start, call)


class _Installation:
    """The patches of all scopes together: put in by the first, taken out by the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._patches = Patches()
        self._users = 0

    def take(self) -> None:
        with self._lock:
            if not self._users:
                try:
                    Pointers().install(self._patches)
                    Others().install(self._patches)
                except BaseException:
                    self._patches.undo()
                    raise
            self._users += 1

    def give_back(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._patches.undo()


_installed = _Installation()
leave_uncompiled(
    *(SafeInplace.__enter__, SafeInplace.__exit__, _enter, _leave),
    *(_Installation.take, _Installation.give_back),
)
