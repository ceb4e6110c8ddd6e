"""TorchScript looks functions up by identity: a wrapped one, however often, stands for its original."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def finding_originals(call: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.jit._builtins._find_builtin` for wrapped functions."""

    def find_builtin(function: Any) -> Any:
        if not hasattr(function, "__wrapped__"):
            return call(function)
        return call(inspect.unwrap(function)) or call(function)

    return functools.update_wrapper(find_builtin, call)
