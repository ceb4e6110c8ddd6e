"""Writes that no Python spelling makes: by the C++ engine in a backward, by TorchScript, through a storage.

A dispatch key that torch keeps for tests lies above all others; kernels under it see every mutating operation
that is dispatched while a thread includes the key, and nothing else costs anything. This is no public
interface of torch: where it is missing, or refuses, the run goes on without.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.compiler import is_compiling

from tensafe.runtime import modes
from tensafe.runtime.calls import outs, writers
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import user_place
from tensafe.runtime.storages import ledger as ledgers

KEY = "TESTING_ONLY_GenericMode"
NO_BYTES = writers.NOT_WRITERS | {"retain_grad", "record_stream", "set_data", "resize_", "resize_as_", "set_"}
"""Declared as writing their argument, though its bytes stay."""

_WRAPPING = frozenset({writers.__file__, outs.__file__})

NotChecked = Callable[[str, str], None]
OnFailure = Callable[[str, Exception], None]


class Exact:
    """Kernels for all mutating operations of aten, and the key that leads to them in every thread."""

    def __init__(self, not_checked: NotChecked, on_failure: OnFailure) -> None:
        self._not_checked = not_checked
        self._on_failure = on_failure
        self._libraries: list[Any] = []
        self._include: Callable[[bool], None] = lambda included: None
        self._on = False

    def install(self, patches: Patches) -> None:
        try:
            key = torch._C._dispatch_key_parse(KEY)
            switch: Any = torch._C._dispatch_tls_set_dispatch_key_included
            self._include = functools.partial(switch, key)
            self._register()
        except Exception as error:  # torch without the key, or with a kernel under it already
            self._destroy()
            why = f"this torch does not let tensafe in there ({type(error).__name__}: {error})"
            self._not_checked("writes by C++ (--depth exact)", why)
            return
        patches.wrap(threading.Thread, "_bootstrap_inner", self._thread)
        self._on = True
        self._include(True)

    def stop(self) -> None:
        """Other threads may still include the key, which then leads nowhere."""
        if self._on:
            self._on = False
            self._include(False)
            self._destroy()

    def pause(self) -> None:
        """One of torch's optimizers is about to step, without a closure: its writes are all wrapped."""
        if self._on:
            self._include(False)

    def resume(self) -> None:
        if self._on:
            self._include(True)

    def _register(self) -> None:
        _let_everything_through()
        aten = torch.library.Library("aten", "IMPL")
        self._libraries.append(aten)
        for name, overload, written in _mutating():
            aten.impl(name, self._kernel(overload, written), KEY)

    def _destroy(self) -> None:
        while self._libraries:
            self._libraries.pop()._destroy()

    def _thread(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def bootstrap(thread: Any) -> Any:
            self._include(self._on)
            try:
                return call(thread)
            finally:
                self._include(False)

        return functools.update_wrapper(bootstrap, call)

    def _kernel(self, overload: Any, written: tuple[tuple[int, str], ...]) -> Callable[..., Any]:
        call, include, clock = overload._op, self._include, ledgers.clock
        label = f"aten.{overload._schema.name.partition('::')[2]}"
        record, on_failure, getframe = _record, self._on_failure, sys._getframe

        def kernel(*args: Any, **kwargs: Any) -> Any:
            order = next(clock)
            include(False)
            try:
                result = call(*args, **kwargs)
            finally:
                include(True)
            try:
                frame = getframe().f_back  # None in a thread of C++
                if frame is None or frame.f_code.co_filename not in _WRAPPING:
                    record(label, written, args, kwargs, order)
            except NotImplementedError:
                pass  # no storage to speak of
            except Exception as error:
                on_failure(label, error)
            return result

        return kernel


@functools.cache
def _let_everything_through() -> Any:
    """For the rest of the process: a thread may include the key when we are gone."""
    library = torch.library.Library("_", "IMPL")
    library.fallback(torch.library.fallthrough_kernel, KEY)
    return library


def _record(
    label: str, written: tuple[tuple[int, str], ...], args: Any, kwargs: dict[str, Any], order: int
) -> None:
    """Enter a write that no wrapped call makes."""
    if modes.asked() or is_compiling():
        return
    node: Any = torch._C._current_autograd_node()
    op = label if node is None else f"{label} of {node.name().rpartition('::')[2]}"
    code, offset = user_place(3) or (None, 0)
    for position, name in written:
        value = args[position] if position < len(args) else kwargs.get(name)
        for tensor in value if isinstance(value, list | tuple) else (value,):
            if type(tensor) in PLAIN:
                ledger = ledgers.ledger_of(tensor)
                ledger.raw = (op, code, offset, order, id(tensor))
                ledger.first = ledger.first or ledger.raw
                if ledger.watch is not None:
                    ledger.watch(tensor, ledger.raw)


def _mutating() -> Iterator[tuple[str, Any, tuple[tuple[int, str], ...]]]:
    """Name, overload and written arguments of every operation that writes bytes."""
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::"):
            continue
        written = tuple(
            (position, argument.name)
            for position, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        )
        name = schema.name.partition("::")[2]
        if not written or name in NO_BYTES:
            continue
        packet = getattr(torch.ops.aten, name, None)
        overload = getattr(packet, schema.overload_name or "default", None)
        if overload is None or torch.Tag.inplace_view in overload.tags:
            continue
        yield name + (f".{schema.overload_name}" if schema.overload_name else ""), overload, written
