"""A tensor over another's memory that lets every operation read and none write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from tensafe.errors import TensafeError

_storage_of = torch._C._storage_address  # type: ignore[attr-defined]
_STATISTICS = {"native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"}
"""Annotated as pure, though in training they write arguments 3 and 4, the running statistics."""
_TRAINING = 5
_places: dict[Any, tuple[tuple[int, ...], tuple[str, ...]]] = {}


class ReadOnlyError(TensafeError, RuntimeError):
    """A write through a read-only view, or an object that cannot be made one."""


class ReadOnlyTensor(torch.Tensor):
    """What `tensafe.readonly` gives for a tensor: an ordinary view for autograd and for whoever reads it."""

    _plain: torch.Tensor

    __torch_function__: Any = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Refuse what writes into a read-only tensor; run the rest on plain ones."""
        kwargs = kwargs or {}
        _refuse_writes(func, args, kwargs)
        storages: set[int] = set()
        plain = [_unwrapped(arg, storages) for arg in args]
        named = {name: _unwrapped(arg, storages) for name, arg in kwargs.items()}
        return _rewrapped(func(*plain, **named), storages)

    @property
    def data(self) -> torch.Tensor:
        """The same elements without their graph; read-only as well."""
        return _over(plain_of(self))

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        raise ReadOnlyError("`.data` of a read-only tensor cannot be set: set it on the original")

    def numpy(self, *, force: bool = False) -> Any:
        """A non-writeable array over the same memory, where torch would give a writeable one."""
        if self.requires_grad and not force:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        array = plain_of(self).numpy(force=force)
        array.setflags(write=False)
        return array

    def tolist(self) -> Any:
        """Numbers, in nested lists."""
        return plain_of(self).tolist()

    def __array__(self, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        """What `numpy.asarray` asks for: non-writeable unless NumPy must convert."""
        array = self.numpy()
        return array if dtype is None or array.dtype == dtype else array.astype(dtype)

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        """DLPack hands over memory that may be written."""
        raise BufferError("a read-only tensor cannot be exported by DLPack: export a copy (x.clone())")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """An ordinary tensor of its own."""
        copied = plain_of(self).clone()
        memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickled as the tensor, and read-only again."""
        if self.requires_grad and not self.is_leaf:
            return wrapped, (plain_of(self).detach(),)
        return wrapped, (plain_of(self),)

    def __repr__(self, **kwargs: Any) -> str:  # type: ignore[override]
        """The tensor's own, in `readonly(...)`."""
        return f"readonly({plain_of(self)!r})"


def wrapped(tensor: torch.Tensor) -> ReadOnlyTensor:
    """A read-only view of a strided tensor; gradients flow through it."""
    view: ReadOnlyTensor = tensor.as_subclass(ReadOnlyTensor)
    plain = tensor.detach()
    view._plain = plain if type(plain) is torch.Tensor else plain.as_subclass(torch.Tensor)
    return view


def plain_of(view: ReadOnlyTensor) -> torch.Tensor:
    """The tensor that operations run on."""
    return view._plain


def _over(plain: torch.Tensor) -> ReadOnlyTensor:
    """A read-only tensor in place of one that was just made."""
    made: ReadOnlyTensor = torch.Tensor._make_subclass(ReadOnlyTensor, plain)
    made._plain = plain
    return made


def _unwrapped(value: Any, storages: set[int]) -> Any:
    """The value with plain tensors for read-only ones, whose storages are collected."""
    if isinstance(value, ReadOnlyTensor):
        plain = plain_of(value)
        storages.add(_storage_of(plain))
        return plain
    if isinstance(value, (list, tuple)):
        return type(value)([_unwrapped(one, storages) for one in value])
    return value


def _rewrapped(value: Any, storages: set[int]) -> Any:
    """Read-only whatever looks into the memory of a read-only argument: views, and nothing else."""
    if isinstance(value, torch.Tensor):
        if type(value) is torch.Tensor and value.layout is torch.strided and _storage_of(value) in storages:
            return _over(value)
        return value
    if isinstance(value, (list, tuple)):
        return type(value)([_rewrapped(one, storages) for one in value])
    return value


def _refuse_writes(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    for argument in _written(func, args, kwargs):
        held = argument if isinstance(argument, (list, tuple)) else (argument,)
        if any(isinstance(one, ReadOnlyTensor) for one in held):
            name = func._schema.name.split("::")[-1]
            raise ReadOnlyError(
                f"`{name}` would write into a tensor made by tensafe.readonly: "
                "write into a copy (x.clone()), or into the original"
            )


def _written(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """The arguments that a call writes."""
    positions, names = _written_places(func)
    for position in positions:
        if position < len(args):
            yield args[position]
    for name in names:
        if name in kwargs:
            yield kwargs[name]
    if func._schema.name.split("::")[-1] in _STATISTICS and len(args) > _TRAINING and args[_TRAINING]:
        yield from args[3:_TRAINING]


def _written_places(func: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    known = _places.get(func)
    if known is None:
        known = _places[func] = _find_written_places(func)
    return known


def _find_written_places(func: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    arguments = func._schema.arguments
    written = [arg.alias_info is not None and arg.alias_info.is_write for arg in arguments]
    positions = tuple([position for position, writes in enumerate(written) if writes])
    return positions, tuple([arguments[position].name for position in positions])
