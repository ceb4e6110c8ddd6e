"""Wrapped writers: every Python spelling of an in-place write leaves its line on the storage that it writes.

Covered: `Tensor.*_`, `Tensor.__setitem__` and the augmented operators, `torch.*_`, the `inplace=True` twins
behind `torch.nn.functional` (`torch._C._nn.*_`, `torch._VF.*_`), `torch._foreach_*_` and `torch._fused_*_`.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.compiler import is_compiling
from torch.overrides import handle_torch_function, has_torch_function

from tensafe.runtime import modes
from tensafe.runtime.calls.stepping import OPTIMIZER_FILES, Stepping
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import INTERNAL, user_place
from tensafe.runtime.storages import ledger as ledgers
from tensafe.runtime.storages.ledger import Ledger, Write
from tensafe.runtime.writes.discarded import Temporaries, temporary_counts

AUGMENTED = {
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
    "__idiv__": "div_",
    "__ifloordiv__": "floor_divide_",
    "__imod__": "remainder_",
    "__ipow__": "pow_",
    "__iand__": "bitwise_and_",
    "__ior__": "bitwise_or_",
    "__ixor__": "bitwise_xor_",
    "__ilshift__": "bitwise_left_shift_",
    "__irshift__": "bitwise_right_shift_",
}
"""The augmented operators, and the methods by which they are told."""

ONLY_RESHAPE = frozenset(
    {"t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "as_strided_", "detach_"}
)
NOT_WRITERS = frozenset(
    {"requires_grad_", "rename_", "names_", "record_stream_", "share_memory_", "is_shared_"}
)

MOST_LOOKS = 4
MOST_LAYERS = 64
"""So many writes of each line, by methods and by functions, are looked at closely."""

OnFailure = Callable[[str, Exception], None]
OnGraphArgument = Callable[[torch.Tensor, Write, tuple[Any, ...]], None]


class Writers:
    """Makes the wrappers; `graph_values` are gradients with a graph, which a write may drop."""

    def __init__(
        self,
        temporaries: Temporaries,
        graph_values: dict[int, Any],
        on_graph_argument: OnGraphArgument,
        on_failure: OnFailure,
        stepping: Stepping,
        each: Callable[..., None],
    ) -> None:
        self._temporaries = temporaries
        self._graph_values = graph_values
        self._on_graph_argument = on_graph_argument
        self._on_failure = on_failure
        self._stepping = stepping
        self._each = each
        self._sites: dict[int, int] = {}  # writes seen by instruction, up to a few
        self._method_count, self._slot_count = temporary_counts()

    def install(self, patches: Patches) -> None:
        patches.wrap(torch.optim.Optimizer, "zero_grad", self._zero_grad)
        for name in ("resize_", "resize_as_"):
            patches.wrap(torch.Tensor, name, self._resize)
        patches.wrap(torch.UntypedStorage, "resize_", self._resize_storage)
        for name in _method_names():
            temporary, slack = (0, 0) if name in AUGMENTED else (self._method_count, 0)
            if name == "__setitem__":
                temporary, slack = self._slot_count, 1  # the value may be a view, which holds its base
            make = functools.partial(
                self._method, f"Tensor.{AUGMENTED.get(name, name)}", temporary, temporary + slack
            )
            patches.wrap(torch.Tensor, name, make)
        for owner, prefix, name in _function_names():
            patches.wrap(owner, name, functools.partial(self._function, f"{prefix}.{name}"))
        for name in dir(torch):
            if name.startswith(("_foreach_", "_fused_")) and name.endswith("_"):
                patches.wrap(torch, name, functools.partial(self._lists, f"torch.{name}"))

    def _method(self, label: str, temporary: int, most: int, call: Callable[..., Any]) -> Callable[..., Any]:
        getframe, getrefcount, clock, key = sys._getframe, sys.getrefcount, ledgers.clock, ledgers._KEY
        graph_values, on_graph_argument = self._graph_values, self._on_graph_argument
        written, on_failure = self._temporaries.written, self._on_failure
        changes_bytes = label.rpartition(".")[2] not in ONLY_RESHAPE
        plain, function_modes = PLAIN, torch._C._len_torch_function_stack
        each, sites, stepping, of_optimizers = self._each, self._sites, self._stepping, OPTIMIZER_FILES

        def writer(*args: Any, **kwargs: Any) -> Any:
            if stepping.entered_at_end and of_optimizers[getframe(1).f_code.co_filename] and not graph_values:
                return call(*args, **kwargs)
            order = next(clock)
            try:
                result = call(*args, **kwargs)
            except RuntimeError as error:
                each("refused", label, args[0], args[1:], error)
                raise
            self, args = args[0], args[1:]
            if type(self) not in plain or (function_modes() and modes.foreign()):
                return result
            try:
                frame: Any = getframe(1)
                code = frame.f_code
                own = self.untyped_storage().__dict__
                ledger = own.get(key)
                if ledger is None:
                    ledger = own[key] = Ledger()
                if not INTERNAL[code.co_filename]:
                    raw = (label, code, frame.f_lasti, order, id(self))
                    references = getrefcount(self) - (result is self)
                    if references <= most:
                        written(self, Write(*raw), args, references - temporary)
                else:
                    raw = (label, *stepping.place_of(frame), order, id(self))
                if changes_bytes:
                    ledger.raw = raw
                    if ledger.first is None:
                        ledger.first = raw
                else:
                    ledger.reshaped = raw
                if ledger.watch is not None:
                    ledger.watch(self, raw)
                if args and type(args[-1]) in plain and args[-1].untyped_storage().__dict__ is own:
                    each("overlapping", label, self, args)
                if graph_values:
                    on_graph_argument(self, Write(*raw), args)
                site = id(raw[1]) + raw[2]
                if (looks := sites.get(site, 0)) < MOST_LOOKS:
                    sites[site] = looks + 1
                    each("first_writes", label, self, args)
            except NotImplementedError:
                pass  # no storage to speak of: a functorch wrapper, a sparse tensor
            except Exception as error:
                on_failure(label, error)
            return result

        return _dressed(writer, call)

    def _zero_grad(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def zero_grad(*args: Any, **kwargs: Any) -> Any:
            if not is_compiling():
                self._stepping.settle()  # a step that raised is over, and these writes are the program's own
            return call(*args, **kwargs)

        return _dressed(zero_grad, call)

    def _resize(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def resize(self: Any, *args: Any, **kwargs: Any) -> Any:
            if type(self) in PLAIN and not is_compiling() and self.layout is torch.strided:
                make_ordinary(self.untyped_storage())
            return call(self, *args, **kwargs)

        return _dressed(resize, call)

    def _resize_storage(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def resize(self: Any, *args: Any, **kwargs: Any) -> Any:
            make_ordinary(self)
            return call(self, *args, **kwargs)

        return _dressed(resize, call)

    def _function(self, label: str, call: Callable[..., Any]) -> Callable[..., Any]:
        clock, on_failure = ledgers.clock, self._on_failure

        def writer(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return call(*args, **kwargs)
            if has_torch_function(args):
                return handle_torch_function(writer, args, *args, **kwargs)
            order = next(clock)
            result = call(*args, **kwargs)
            try:
                target = args[0] if args else kwargs.get("input", kwargs.get("self"))
                record(label, (target,), order)
                if type(target) in PLAIN and not modes.asked():
                    self._look(label, target, args[1:])  # type: ignore[arg-type]
            except NotImplementedError:
                pass  # no storage to speak of: a functorch wrapper, a sparse tensor
            except Exception as error:
                on_failure(label, error)
            return result

        return _dressed(writer, call)

    def _look(self, label: str, target: torch.Tensor, args: tuple[Any, ...]) -> None:
        raw = ledgers.ledger_of(target).raw
        site = id(raw[1]) + raw[2] if raw is not None else 0
        looks = self._sites.get(site, 0)
        if looks < MOST_LAYERS:  # the layers of a model are all called by one line of the program
            self._sites[site] = looks + 1
            self._each("first_writes", label, target, args)

    def _lists(self, label: str, call: Callable[..., Any]) -> Callable[..., Any]:
        clock, on_failure = ledgers.clock, self._on_failure
        fused = label.startswith("torch._fused_")  # bypasses the version counter, by which a step is entered
        getframe, stepping = sys._getframe, self._stepping

        def writer(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return call(*args, **kwargs)
            order = next(clock)
            result = call(*args, **kwargs)
            if not fused and stepping.entered_at_end and OPTIMIZER_FILES[getframe(1).f_code.co_filename]:
                return result
            try:
                record(label, _fused_targets(args) if fused else args[0], order)
            except NotImplementedError:
                pass  # no storage to speak of: a functorch wrapper, a sparse tensor
            except Exception as error:
                on_failure(label, error)
            return result

        return _dressed(writer, call)


_plain_data_ptr = torch.UntypedStorage.data_ptr


def make_ordinary(storage: torch.UntypedStorage) -> None:
    """A copy-on-write storage does not survive a resize (c10/core/impl/COW.cpp): end that life first.

    Only a storage that was saved under our hooks has one; a fake tensor's has no pointer to take.
    """
    if ledgers._KEY in storage.__dict__ and storage.nbytes():
        with contextlib.suppress(RuntimeError, NotImplementedError):
            _plain_data_ptr(storage)


def record(label: str, targets: Iterable[Any], order: int) -> None:
    """Enter one write into the ledgers of all its targets, at the line of the program that runs."""
    if modes.asked():
        return
    code, offset = user_place(3) or (None, 0)
    for tensor in targets:
        if type(tensor) in PLAIN:
            ledger = ledgers.ledger_of(tensor)
            ledger.raw = (label, code, offset, order, id(tensor))
            ledger.first = ledger.first or ledger.raw
            if ledger.watch is not None:
                ledger.watch(tensor, ledger.raw)


def _fused_targets(args: tuple[Any, ...]) -> Iterator[Any]:
    """All tensor lists but the gradients, which the schemas call written though kernels only unscale them."""
    for position, item in enumerate(args):
        if position != 1 and isinstance(item, list | tuple):
            yield from item


@functools.cache
def _method_names() -> tuple[str, ...]:
    inplace = [name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")]
    return ("__setitem__", *AUGMENTED, *(name for name in inplace if name not in NOT_WRITERS))


@functools.cache
def _function_names() -> tuple[tuple[Any, str, str], ...]:
    return tuple(_functions_in_place())


def _functions_in_place() -> Iterator[tuple[Any, str, str]]:
    for owner, prefix in ((torch, "torch"), (torch._C._nn, "torch.nn.functional")):
        for name in dir(owner):
            if name.endswith("_") and not name.startswith("_") and callable(getattr(owner, name)):
                yield owner, prefix, name
    for name in dir(torch._C._VariableFunctions):
        if name.endswith("_") and not name.startswith("_"):
            yield torch._VF, "torch", name


def _dressed(wrapper: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    functools.update_wrapper(wrapper, call)
    return wrapper
