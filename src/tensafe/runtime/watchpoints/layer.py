"""Wrapped writers for watchpoints: they look at a storage before and after a call writes into it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.compiler import is_compiling

from tensafe.runtime.calls.writers import (
    AUGMENTED,
    ONLY_RESHAPE,
    _function_names,
    _fused_targets,
    _method_names,
)
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.watchpoints.region import KEY

Wrapped = Callable[..., Any]
Around = Callable[[str, Wrapped, tuple[Any, ...], tuple[Any, ...], dict[str, Any]], Any]
"""`around(label, call, targets, args, kwargs)` makes the call and tells what was written."""

WITH_OUT = (torch, torch.linalg, torch.special, torch.fft)
NORMS = {"batch_norm": 5, "instance_norm": 5}
"""Functions that write running statistics (arguments 3 and 4) where the argument at this place is true."""


class Layer:
    """Installs the wrappers, under those of an engine where one runs."""

    def __init__(self, around: Around, exposed: Callable[[], bool]) -> None:
        self._around = around
        self._exposed = exposed

    def install(self, patches: Patches) -> None:
        tensor, storage = torch.Tensor, torch.UntypedStorage
        wrap = functools.partial(patches.wrap, innermost=True)
        for name in _method_names():
            if name not in ONLY_RESHAPE:
                label = f"Tensor.{AUGMENTED.get(name, name)}"
                wrap(tensor, name, functools.partial(self._method, label))
        for name in ("fill_", "copy_", "__setitem__"):
            wrap(storage, name, functools.partial(self._method, f"UntypedStorage.{name}"))
        for owner, prefix, name in _function_names():
            wrap(owner, name, functools.partial(self._calls, f"{prefix}.{name}", _first))
        for name in dir(torch):
            if name.startswith(("_foreach_", "_fused_", "_amp_")) and name.endswith("_"):
                targets = _fused_targets if name.startswith("_fused_") else _lists
                wrap(torch, name, functools.partial(self._calls, f"torch.{name}", targets))
        for name, place in NORMS.items():
            make = functools.partial(self._calls, f"torch.{name}", functools.partial(_statistics, place))
            wrap(torch, name, make)
        for owner in WITH_OUT:
            for name in _names_with_out(owner):
                label = f"{owner.__name__}.{name}"
                wrap(owner, name, functools.partial(self._with_out, label))
        patches.wrap(tensor, "data", self._data)

    def _method(self, label: str, call: Wrapped) -> Wrapped:
        around, watched = self._around, self._watched

        def writer(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not watched(self):
                return call(self, *args, **kwargs)
            return around(label, call, (self,), (self, *args), kwargs)

        return functools.update_wrapper(writer, call)

    def _calls(self, label: str, targets_of: Callable[..., Iterable[Any]], call: Wrapped) -> Wrapped:
        around, watched = self._around, self._watched

        def writer(*args: Any, **kwargs: Any) -> Any:
            if not is_compiling():
                named = tuple(kwargs[name] for name in ("input", "self", "running_mean") if name in kwargs)
                targets = tuple(one for one in targets_of(args or named) if watched(one))
                if targets:
                    return around(label, call, targets, args, kwargs)
            return call(*args, **kwargs)

        return functools.update_wrapper(writer, call)

    def _with_out(self, label: str, call: Wrapped) -> Wrapped:
        around, watched = self._around, self._watched

        def writer(*args: Any, **kwargs: Any) -> Any:
            out = kwargs.get("out")
            if out is not None and not is_compiling():
                outs = out if isinstance(out, tuple | list) else (out,)
                targets = tuple(one for one in outs if watched(one))
                if targets:
                    return around(label, call, targets, args, kwargs)
            return call(*args, **kwargs)

        return functools.update_wrapper(writer, call)

    def _data(self, descriptor: Any) -> property:
        around, watched = self._around, self._watched

        def assign(self: Any, value: Any) -> None:
            if is_compiling() or not watched(self):
                descriptor.__set__(self, value)
            else:
                around("Tensor.data", descriptor.__set__, (self,), (self, value), {})

        return property(lambda self: descriptor.__get__(self), assign, doc=descriptor.__doc__)

    def _watched(self, target: Any) -> bool:
        """Whether anything watches the target's storage, or its memory by address."""
        try:
            if isinstance(target, torch.UntypedStorage):
                storage = target
            elif type(target) in PLAIN:
                storage = target.untyped_storage()
            elif isinstance(target, torch.Tensor):
                with torch._C.DisableTorchFunction():
                    storage = target.untyped_storage()
            else:
                return False
        except (NotImplementedError, RuntimeError):
            return False  # a functorch wrapper, a sparse tensor
        return KEY in storage.__dict__ or (not storage.resizable() and self._exposed())


def _first(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return args[:1]


def _lists(args: tuple[Any, ...]) -> Iterator[Any]:
    if args:
        yield from args[0] if isinstance(args[0], list | tuple) else args[:1]


def _statistics(flag: int, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return args[3:5] if len(args) > flag and args[flag] else ()


@functools.cache
def _names_with_out(owner: Any) -> list[str]:
    return list(_find_names_with_out(owner))


def _find_names_with_out(owner: Any) -> Iterator[str]:
    for name in dir(owner):
        function = getattr(owner, name, None)
        is_builtin = type(function).__name__ == "builtin_function_or_method"
        is_private = name.startswith("_") or name.endswith("_")
        if is_builtin and not is_private and "out=" in (function.__doc__ or ""):
            yield name
