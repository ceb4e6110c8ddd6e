"""Functions that the program calls with `out=`: these alone are wrapped, as each file is first seen."""

from __future__ import annotations

import ast
import functools
import linecache
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_compiling
from torch.overrides import handle_torch_function, has_torch_function

from tensafe.runtime.calls.writers import make_ordinary, record
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import INTERNAL
from tensafe.runtime.places.source import syntax_of
from tensafe.runtime.storages.ledger import clock

if TYPE_CHECKING:
    from tensafe.runtime.engine import Guarded

_MENTIONS_OUT = re.compile(r"\bout\s*=")


class Outs:
    """Wraps `torch.NAME` once a file of the program is seen to call a NAME with `out=`."""

    def __init__(self, guarded: Guarded) -> None:
        self._guarded = guarded
        self._patches = Patches()
        self._wrapped: set[str] = set()

    def install(self, patches: Patches) -> None:
        self._patches = patches
        look = self._guarded("functions with out=", self._look)
        for filename, internal in list(INTERNAL.items()):
            if not internal:
                look(filename)
        INTERNAL.on_user_file = look

    def stop(self) -> None:
        INTERNAL.on_user_file = None

    def _look(self, filename: str) -> None:
        for name in _names_in(filename):
            function = getattr(torch, name, None)
            if name not in self._wrapped and callable(function) and not isinstance(function, type):
                self._wrapped.add(name)
                self._patches.wrap(torch, name, functools.partial(self._function, f"torch.{name}"))

    def _function(self, label: str, call: Callable[..., Any]) -> Callable[..., Any]:
        before = self._guarded(label, _end_lazy_lives)
        after = self._guarded(label, record)

        def with_out(*args: Any, **kwargs: Any) -> Any:
            out = kwargs.get("out")
            if is_compiling():
                return call(*args, **kwargs)
            if has_torch_function((*args, out)):
                return handle_torch_function(with_out, (*args, out), *args, **kwargs)
            if out is None:
                return call(*args, **kwargs)
            targets = out if isinstance(out, tuple | list) else (out,)
            order = next(clock)
            before(targets)
            result = call(*args, **kwargs)
            after(label, targets, order)
            return result

        return functools.update_wrapper(with_out, call)


_known: dict[str, tuple[list[str], tuple[str, ...]]] = {}
"""The lines of a file and what it calls with `out=`: a process may be watched many times."""


def _names_in(filename: str) -> tuple[str, ...]:
    lines = linecache.getlines(filename)
    known = _known.get(filename)
    if known is None or known[0] is not lines:
        mentioned = any(_MENTIONS_OUT.search(line) for line in lines)
        known = _known[filename] = lines, tuple(_called_with_out(filename)) if mentioned else ()
    return known[1]


def _called_with_out(filename: str) -> Iterator[str]:
    syntax = syntax_of(filename)
    for node in syntax.parents if syntax else ():
        if isinstance(node, ast.Call) and any(keyword.arg == "out" for keyword in node.keywords):
            if isinstance(node.func, ast.Attribute):
                yield node.func.attr
            elif isinstance(node.func, ast.Name):
                yield node.func.id


def _end_lazy_lives(targets: Any) -> None:
    """`out=` may resize its target, which no copy-on-write storage survives."""
    for tensor in targets:
        if type(tensor) in PLAIN and tensor.layout is torch.strided:
            make_ordinary(tensor.untyped_storage())
