"""Wrapped calls that are no writes but matter: cuts, exports, live references, restores, comparisons."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_compiling
from torch.overrides import handle_torch_function, has_torch_function

from tensafe.runtime import modes
from tensafe.runtime.graphs.cuts import Cuts, Strength, graph_tensors
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import INTERNAL, user_place, user_places
from tensafe.runtime.references.ownership import Ownership
from tensafe.runtime.storages import ledger as ledgers
from tensafe.runtime.storages.ledger import Event, ledger_of

if TYPE_CHECKING:
    from tensafe.runtime.engine import Guarded

Wrapped = Callable[..., Any]

MOVES = ("to", "cpu", "cuda", "float", "double", "half", "bfloat16", "type")
OVERRIDABLE = frozenset({"torch.equal", "torch.allclose", "torch.dist"})
"""Wrapped functions that hand themselves to a `__torch_function__`: by this name the program knows them."""

COMPARISONS = ("__sub__", "sub", "equal", "allclose", "dist")


class Events:
    """Installs the wrappers and passes what happens on to the ledgers of cuts and of ownership."""

    def __init__(self, cuts: Cuts, ownership: Ownership, guarded: Guarded) -> None:
        self._cuts = cuts
        self._ownership = ownership
        self._guarded = guarded

    def install(self, patches: Patches) -> None:
        for name in ("item", "tolist", "__float__"):
            patches.wrap(torch.Tensor, name, functools.partial(self._leaves_graph, f"Tensor.{name}"))
        patches.wrap(torch.Tensor, "detach", self._detach)
        patches.replace(torch.Tensor, "data", self._data_property())
        for name in ("numpy", "data_ptr", "__dlpack__"):
            patches.wrap(torch.Tensor, name, functools.partial(self._exports, f"Tensor.{name}"))
        for owner in (torch, torch.utils.dlpack):
            patches.wrap(owner, "to_dlpack", functools.partial(self._exports, "torch.to_dlpack"))
        patches.wrap(
            torch.UntypedStorage, "data_ptr", functools.partial(self._exports, "UntypedStorage.data_ptr")
        )
        for name in ("from_numpy", "as_tensor", "frombuffer", "asarray"):
            patches.wrap(torch, name, functools.partial(self._imports, f"torch.{name}"))
        patches.wrap(torch, "tensor", self._rebuild)
        for name in COMPARISONS:
            patches.wrap(torch.Tensor, name, functools.partial(self._compares, f"Tensor.{name}"))
        for name in ("equal", "allclose", "dist"):
            patches.wrap(torch, name, functools.partial(self._compares, f"torch.{name}"))
        patches.wrap(
            torch._C._nn, "mse_loss", functools.partial(self._compares, "torch.nn.functional.mse_loss")
        )
        self._install_modules(patches)
        self._install_optimizers(patches)

    def _install_modules(self, patches: Patches) -> None:
        module = torch.nn.Module
        patches.wrap(module, "state_dict", self._state_dict)
        patches.wrap(module, "load_state_dict", self._load_state_dict)
        for name in ("parameters", "named_parameters"):
            patches.wrap(module, name, functools.partial(self._parameters, f"Module.{name}"))
        for name in MOVES:
            patches.wrap(module, name, functools.partial(self._moves, f"Module.{name}"))

    def _install_optimizers(self, patches: Patches) -> None:
        patches.wrap(torch.optim.Optimizer, "state_dict", self._optimizer_state_dict)
        patches.wrap(torch.optim.Optimizer, "load_state_dict", self._optimizer_load_state_dict)

    # --- tensors leaving their graph or their type

    def _leaves_graph(self, label: str, call: Wrapped) -> Wrapped:
        cut = self._guarded(label, self._cuts.cut)
        plain, function_modes = PLAIN, torch._C._len_torch_function_stack

        def exported(self: Any) -> Any:
            if (
                not is_compiling()
                and type(self) in plain
                and (function_modes() or self.requires_grad)
                and _has_graph(self)
            ):
                cut(label, (self,), Strength.EXPORTED, place=user_place(2))
            return call(self)

        return functools.update_wrapper(exported, call)

    def _detach(self, call: Wrapped) -> Wrapped:
        cut = self._guarded("Tensor.detach", self._cuts.cut)
        keep = self._guarded("Tensor.detach", self._ownership.keep)
        getframe = sys._getframe

        def detach(self: Any) -> Any:
            result = call(self)
            if is_compiling() or type(self) not in PLAIN or INTERNAL[getframe(1).f_code.co_filename]:
                return result  # torch detaches for ends of its own: to print, to clip, for a hard sample
            if modes.asked():
                return result
            if self.grad_fn is not None:
                cut("Tensor.detach", (self,), Strength.ALIASED, place=user_place(2))
            elif self.requires_grad:
                keep("Tensor.detach", (result,), user_place(2), id(self))
            return result

        return functools.update_wrapper(detach, call)

    def _data_property(self) -> property:
        descriptor: Any = torch._C.TensorBase.data
        cut = self._guarded("Tensor.data", self._cuts.cut)
        touch = self._guarded("Tensor.data", self._ownership.touched)
        kept = self._ownership.kept_entries
        replaced = self._guarded("Tensor.data", _note_replaced)
        keep = self._guarded("Tensor.data", self._ownership.keep)
        getframe = sys._getframe

        def get(self: Any) -> Any:
            if kept and id(self) in kept:
                touch(self)
            if _has_graph(self):
                cut("Tensor.data", (self,), Strength.ALIASED, place=user_place(2))
            result = descriptor.__get__(self)
            if type(self) is torch.nn.Parameter and not INTERNAL[getframe(1).f_code.co_filename]:
                keep("Tensor.data", (result,), user_place(2), id(self))
            return result

        def assign(self: Any, value: Any) -> None:
            if type(self) in PLAIN and not is_compiling():
                replaced(self)
            descriptor.__set__(self, value)

        return property(get, assign, doc=descriptor.__doc__)

    def _rebuild(self, call: Wrapped) -> Wrapped:
        @self._guarded.watcher("torch.tensor")
        def watch(data: Any) -> None:
            sources = graph_tensors(data)
            if sources:
                self._cuts.cut("torch.tensor", sources, Strength.REBUILT, place=user_place(4))
            elif isinstance(data, float | int):
                self._cuts.rebuilt(user_place(4))

        def tensor(*args: Any, **kwargs: Any) -> Any:
            data = args[0] if args else kwargs.get("data")
            if not is_compiling() and isinstance(data, list | tuple | torch.Tensor | float | int):
                watch(data)
            return call(*args, **kwargs)

        return functools.update_wrapper(tensor, call)

    def _exports(self, label: str, call: Wrapped) -> Wrapped:
        cut = self._guarded(label, self._cuts.cut)
        export = self._guarded(label, _note_export)

        def exported(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = call(self, *args, **kwargs)
            if is_compiling():
                return result
            export(label, self, user_places(2, 4))
            if _has_graph(self):
                cut(label, (self,), Strength.EXPORTED, place=user_place(2))
            return result

        return functools.update_wrapper(exported, call)

    def _imports(self, label: str, call: Wrapped) -> Wrapped:
        export = self._guarded(label, _note_export)
        cut = self._guarded(label, self._cuts.cut)

        def imported(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            if is_compiling():
                return result
            source = args[0] if args else None
            if isinstance(source, list | tuple):
                sources = graph_tensors(source)
                if sources:
                    cut(label, sources, Strength.REBUILT, place=user_place(2))
            elif source is not None and not isinstance(source, torch.Tensor):
                export(label, result, user_places(2, 4))
            return result

        return functools.update_wrapper(imported, call)

    # --- live references

    def _state_dict(self, call: Wrapped) -> Wrapped:
        keep = self._guarded("Module.state_dict", self._ownership.keep)

        def state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = call(self, *args, **kwargs)
            if is_compiling():
                return result
            if not args and kwargs.get("destination") is None and isinstance(result, Mapping):
                keep("Module.state_dict", result.values(), user_place(2))
            return result

        return functools.update_wrapper(state_dict, call)

    def _load_state_dict(self, call: Wrapped) -> Wrapped:
        restoring = self._guarded("Module.load_state_dict", self._ownership.restoring)
        restored = self._guarded("Module.load_state_dict", self._ownership.restored)

        def load_state_dict(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(state_dict, Mapping):
                return call(self, state_dict, *args, **kwargs)
            restoring(self, state_dict, user_place(2))
            result = call(self, state_dict, *args, **kwargs)
            restored(state_dict)
            return result

        return functools.update_wrapper(load_state_dict, call)

    def _parameters(self, label: str, call: Wrapped) -> Wrapped:
        listed = self._guarded(label, self._ownership.listed)
        getframe = sys._getframe

        def parameters(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_compiling() and not INTERNAL[getframe(1).f_code.co_filename]:
                listed(self, label, user_place(2))
            return call(self, *args, **kwargs)

        return functools.update_wrapper(parameters, call)

    def _moves(self, label: str, call: Wrapped) -> Wrapped:
        moved = self._guarded(label, self._ownership.moved)

        def move(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return call(self, *args, **kwargs)
            result = call(self, *args, **kwargs)
            if result is self:
                moved(self, label, user_place(2))
            return result

        return functools.update_wrapper(move, call)

    def _optimizer_state_dict(self, call: Wrapped) -> Wrapped:
        given = self._guarded("Optimizer.state_dict", self._ownership.state_given)

        def state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
            given(self)
            return call(self, *args, **kwargs)

        return functools.update_wrapper(state_dict, call)

    def _optimizer_load_state_dict(self, call: Wrapped) -> Wrapped:
        taken = self._guarded("Optimizer.load_state_dict", self._ownership.state_taken)

        def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = call(self, *args, **kwargs)
            taken(self, user_place(2))
            return result

        return functools.update_wrapper(load_state_dict, call)

    def _compares(self, label: str, call: Wrapped) -> Wrapped:
        compared = self._guarded(label, self._ownership.compared)
        differed = self._guarded(label, self._ownership.differed)
        candidates = self._ownership.always_same
        tensors = PLAIN
        kept = self._ownership.kept_entries

        def compare(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return call(*args, **kwargs)
            if label in OVERRIDABLE and has_torch_function(args):
                return handle_torch_function(compare, args, *args, **kwargs)
            if len(args) >= 2 and not modes.asked():
                left, right = args[0], args[1]
                plain = type(left) in tensors and type(right) in tensors
                if plain and (left is right or (kept and _same_elements(left, right))):
                    compared(label, left, right, user_place(2))
                elif candidates:
                    differed(user_place(2))
            return call(*args, **kwargs)

        return functools.update_wrapper(compare, call)


def _has_graph(tensor: torch.Tensor) -> bool:
    """Whether a plain tensor has a grad_fn; a subclass or a mode of the program is not asked."""
    return type(tensor) in PLAIN and not modes.asked() and tensor.grad_fn is not None


def _same_elements(left: torch.Tensor, right: torch.Tensor) -> bool:
    try:
        return (
            left.layout is right.layout is torch.strided
            and left.untyped_storage() is right.untyped_storage()
            and left.storage_offset() == right.storage_offset()
            and left.shape == right.shape
            and left.stride() == right.stride()
        )
    except (NotImplementedError, RuntimeError):
        return False  # a functorch wrapper has no storage of its own


def _note_replaced(tensor: torch.Tensor) -> None:
    """`tensor.data = other`: whoever saved the tensor reads the other's values from now on."""
    if tensor.layout is torch.strided and not modes.asked():
        code, offset = user_place(4) or (None, 0)
        ledger = ledger_of(tensor)
        ledger.raw = ("Tensor.data", code, offset, next(ledgers.clock), id(tensor))
        ledger.first = ledger.first or ledger.raw


def _note_export(label: str, owner: Any, places: Iterable[Any]) -> None:
    """A pointer into this memory is out: from now on its storage is copied, never cloned lazily."""
    with torch._C.DisableTorchFunction():
        if isinstance(owner, torch.UntypedStorage):
            ledger = ledgers.ledger_of_storage(owner)
        elif isinstance(owner, torch.Tensor) and owner.layout is torch.strided:
            ledger = ledger_of(owner)
        else:
            return
    ledger.exported = Event(label, tuple(places), next(ledgers.clock))
