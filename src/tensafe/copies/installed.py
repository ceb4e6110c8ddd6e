"""`deepcopy.installed()`: `copy.deepcopy` is ours for a while, and theirs again afterwards."""

from __future__ import annotations

import contextlib
import copy
import functools
import sys
import types
from typing import Any

from tensafe.copies.deep import checked_graph, deepcopy
from tensafe.copies.walking.session import Graph


class Installed(contextlib.ContextDecorator):
    """Inside the `with` block, or the decorated function, `copy.deepcopy` is `tensafe.deepcopy`.

    So are the names that modules bound by `from copy import deepcopy`, as far as they stand in a module that
    is loaded when the block begins: `reached` lists them. Not reached: names in classes, in closures and in
    default arguments, modules that are first imported inside the block (they keep ours, which goes on
    working), other processes. The change is the process's, for all threads; leaving the block undoes it.

    ```python
    with tensafe.deepcopy.installed(graph="cut"):
        ema = AveragedModel(model)  # calls copy.deepcopy(model)
    ```
    """

    def __init__(self, *, graph: Graph = "raise", grads: bool = False) -> None:
        checked_graph(graph, ("raise", "cut", "keep"))
        self.reached: list[str] = []
        self._options: dict[str, Any] = {"graph": graph, "grads": grads}
        self._undo: list[list[tuple[types.ModuleType, str, object, object]]] = []

    def _recreate_cm(self) -> Installed:
        return type(self)(**self._options)

    def __enter__(self) -> Installed:
        ours = _replacement(**self._options)
        theirs = copy.deepcopy
        changed: list[tuple[types.ModuleType, str, object, object]] = [(copy, "deepcopy", theirs, ours)]
        changed += [(module, name, theirs, ours) for module, name in _bindings(theirs)]
        for module, name, _, new in changed:
            setattr(module, name, new)
        self._undo.append(changed)
        self.reached = [f"{module.__name__}.{name}" for module, name, _, _ in changed]
        return self

    def __exit__(self, *_: object) -> None:
        for module, name, old, new in self._undo.pop():
            if module.__dict__.get(name) is new:  # not what somebody else has put there meanwhile
                setattr(module, name, old)


def _replacement(graph: Graph, grads: bool) -> Any:
    if graph == "raise" and not grads:
        return deepcopy

    @functools.wraps(deepcopy)
    def with_options(x: Any, memo: Any = None, _nil: object = None) -> Any:
        return deepcopy(x, memo, graph=graph, grads=grads)

    return with_options


def _bindings(function: object) -> list[tuple[types.ModuleType, str]]:
    """Where else a function is bound by name in a loaded module; ours keep what they have."""
    found = []
    for module in list(sys.modules.values()):
        if type(module) is not types.ModuleType or module is copy or module.__name__.startswith("tensafe"):
            continue
        found += [(module, name) for name, value in list(module.__dict__.items()) if value is function]
    return found
