"""How tensors, arrays and storages are written: a number in the stream, their bytes beside it."""

from __future__ import annotations

import copyreg
import sys
from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import Any

import torch

from tensafe.copies.pickling import symbols
from tensafe.copies.pickling.container import ARRAY, PARAMETER, STORAGE, TENSOR
from tensafe.copies.pickling.recorder import Recorder

Reduce = Callable[[Any], Any]

_STORAGELESS = frozenset(["meta", "xla", "maia", "mtia"])
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
_torch_function = vars(torch.Tensor)["__torch_function__"].__func__
_value, _set_state = symbols.value, symbols.set_state
_by_itself: Reduce = methodcaller("__reduce_ex__", 5)
"""What pickle does with an object that no table knows, without a call into Python."""


class NonLeaf(Exception):
    """A tensor with a graph was met, and graphs cannot be written."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__()
        self.tensor = tensor


class Reducer:
    """The reductions of one pickler, which record what they meet."""

    def __init__(self, graph: str) -> None:
        self.recorder = Recorder()
        self._cuts = graph == "cut"

    def tensor(self, tensor: torch.Tensor) -> Any:
        """Of a tensor that is of no subclass."""
        if tensor.requires_grad and not tensor.is_leaf:
            return self._non_leaf(tensor)
        if not _is_strided(tensor):
            return _of_torch(tensor)
        if tensor._backward_hooks:
            _warn_of_hooks(tensor)
        number = self.recorder.add(TENSOR, tensor)
        state = tensor.__dict__
        return (_value, (number,), state, None, None, _set_state) if state else (_value, (number,))

    def parameter(self, tensor: torch.nn.Parameter) -> Any:
        """Of a parameter."""
        if not _is_strided(tensor):
            return _of_torch(tensor)
        number = self.recorder.add(PARAMETER, tensor)
        state = tensor.__dict__
        return (_value, (number,), state, None, None, _set_state) if state else (_value, (number,))

    def subclass(self, tensor: torch.Tensor) -> Any:
        """Of a subclass; one that changes how tensors are kept reduces itself."""
        kind = type(tensor)
        if tensor.requires_grad and not tensor.is_leaf:
            return self._non_leaf(tensor)
        if not _keeps_only_a_tensor(kind) or not _is_strided(tensor):
            return _of_torch(tensor)
        _warn_of_hooks(tensor)
        plain = tensor.detach().as_subclass(torch.Tensor)
        made = symbols.subclass, (plain, kind, tensor.requires_grad)
        state = torch._utils._get_obj_state(tensor)
        return (*made, state, None, None, _set_state) if state else made

    def array(self, array: Any) -> Any:
        """Of a NumPy array that is of no subclass."""
        if array.dtype.hasobject:
            return array.__reduce_ex__(5)
        return _value, (self.recorder.add(ARRAY, array),)

    def storage(self, storage: torch.UntypedStorage) -> Any:
        """Of memory without a tensor."""
        if storage.device.type == "meta":
            return storage.__reduce_ex__(5)
        return _value, (self.recorder.add(STORAGE, storage),)

    def typed_storage(self, storage: torch.TypedStorage) -> Any:
        """Of the old kind of storage."""
        return symbols.typed_storage, (storage._untyped_storage, storage.dtype)

    def _non_leaf(self, tensor: torch.Tensor) -> Any:
        if not self._cuts:
            raise NonLeaf(tensor)
        cut = tensor.detach()
        return self.tensor(cut) if type(cut) is torch.Tensor else self.subclass(cut)


class ReductionTable(dict[type, Reduce]):
    """A `dispatch_table` that knows tensors and arrays, and what `copyreg` and the program have registered.

    A type that it is asked for the first time is entered, so that pickle does not ask Python again.
    """

    def __init__(self, reducer: Reducer, registered: Mapping[type, Reduce]) -> None:
        super().__init__({**copyreg.dispatch_table, **registered})
        self._reducer = reducer
        self[torch.Tensor], self[torch.nn.Parameter] = reducer.tensor, reducer.parameter
        self[torch.UntypedStorage] = reducer.storage

    def __missing__(self, kind: type) -> Reduce:
        if issubclass(kind, type):
            raise KeyError(kind)  # a class with a metaclass: pickle writes its name
        self[kind] = self._found(kind)
        return self[kind]

    def _found(self, kind: type) -> Reduce:
        numpy = sys.modules.get("numpy")
        if numpy is not None and kind is numpy.ndarray:
            return self._reducer.array
        if issubclass(kind, torch.Tensor):
            return self._reducer.subclass
        if issubclass(kind, torch.TypedStorage):
            return self._reducer.typed_storage
        return _by_itself


def _is_strided(tensor: torch.Tensor) -> bool:
    """Whether the elements lie in one storage that may be read."""
    return (
        tensor.layout is torch.strided
        and (tensor.is_cpu or tensor.device.type not in _STORAGELESS)
        and not tensor.is_nested
        and not tensor.is_quantized
        and not _is_wrapped(tensor)
    )


def _keeps_only_a_tensor(kind: Any) -> bool:
    plain = torch.Tensor
    return (
        kind.__reduce_ex__ is plain.__reduce_ex__
        and kind.__torch_dispatch__ is plain.__torch_dispatch__
        and getattr(kind.__torch_function__, "__func__", None) is _torch_function
    )


def _of_torch(tensor: torch.Tensor) -> Any:
    """The tensor's own reduction; what it is made of comes back to the pickler."""
    with torch.no_grad():
        return tensor.__reduce_ex__(5)


def _warn_of_hooks(tensor: torch.Tensor) -> None:
    from torch.utils.hooks import warn_if_has_hooks

    warn_if_has_hooks(tensor)
