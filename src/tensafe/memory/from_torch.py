"""The strided pieces of memory behind a tensor, read without touching an element."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import cast

import torch

from tensafe.memory.extent import Extent
from tensafe.memory.part import Part

PLAIN = (torch.Tensor, torch.nn.Parameter)
_function_modes = torch._C._len_torch_function_stack
_tracer = torch._C._get_tracing_state
_new = tuple.__new__
_device_names: dict[torch.device, str] = {}
COMPRESSED_ROWS = (torch.sparse_csr, torch.sparse_bsr)
COMPRESSED_COLUMNS = (torch.sparse_csc, torch.sparse_bsc)


class NoStorageError(Exception):
    """The tensor has no storage that its elements lie in; the message says what it is."""


def parts_of(tensor: torch.Tensor) -> list[Part]:
    """Each strided piece of the tensor's memory: one for a strided tensor, its components for others.

    Sparse tensors have `indices` and `values` (or `crow_indices`, `col_indices`, …), wrapper subclasses the
    tensors that they hold, a DTensor its local shard. Reads no element, runs no `__torch_function__` and
    leaves copy-on-write tensors as they are. Raises `NoStorageError` for opaque tensors (MKL-DNN).
    """
    if _is_plain(tensor):
        return [_strided(tensor, "")]
    with torch._C.DisableTorchFunction(), torch.no_grad(), unwatched():
        return list(_parts(tensor, ""))


def pair_of(a: torch.Tensor, b: torch.Tensor) -> tuple[Extent, Extent, int] | None:
    """Two plain tensors as extents in one space, in units of so many bytes; None where more must be asked.

    The quick way for the common case. In one storage, the extents count from its start; in two, they are
    addresses, and a byte that both reach is not yet an answer: the devices may differ, or both be lazy
    clones.
    """
    if type(a) not in PLAIN or type(b) not in PLAIN or _function_modes() or _tracer() is not None:
        return None
    try:
        if a.is_nested or b.is_nested:
            return None
        if a.untyped_storage() is not b.untyped_storage():
            return _addressed(a), _addressed(b), 1
        size = a.itemsize
        if size == b.itemsize:
            first = _new(Extent, (a.storage_offset(), a.shape, a.stride(), 1))
            return first, _new(Extent, (b.storage_offset(), b.shape, b.stride(), 1)), size
        return _extent(a), _extent(b), 1
    except (NotImplementedError, RuntimeError, AttributeError):  # no storage, strides or `const_data_ptr`
        return None


def same_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two plain tensors look into one storage."""
    return a.untyped_storage() is b.untyped_storage()


def described(tensor: torch.Tensor) -> tuple[int, str, str]:
    """Bytes and device of a plain tensor's storage, and what is special about it."""
    device = tensor.device
    name = _device_names.get(device) or _device_names.setdefault(device, str(device))
    plain = not (tensor.is_meta or tensor.is_quantized or is_copy_on_write(tensor))
    storage = tensor.untyped_storage()
    return storage.nbytes(), name, "" if plain else _note(tensor, storage)


def is_copy_on_write(tensor: torch.Tensor) -> bool:
    """Whether the storage is a lazy clone, or the source of one."""
    try:
        return bool(torch._C._is_cow_tensor(tensor))  # type: ignore[attr-defined]
    except RuntimeError:  # from 2.14 on, of a subclass that dispatches for itself
        return False


def address_of(tensor: torch.Tensor) -> int | None:
    """The address of byte 0 of the storage, None where there is none or reading it would copy the storage.

    `data_ptr()` makes a copy-on-write tensor take its own copy; `const_data_ptr()` (newer torch) does not.
    """
    storage = torch.Tensor.untyped_storage(tensor)
    if storage.device.type == "meta" or not storage.nbytes():
        return None
    try:
        if not tensor.numel() or not hasattr(torch.Tensor, "const_data_ptr"):
            return None if is_copy_on_write(tensor) else storage.data_ptr() or None
        first = int(torch.Tensor.const_data_ptr(tensor))  # type: ignore[attr-defined]
    except (RuntimeError, NotImplementedError):  # fake, frozen, or a device without addresses
        return None
    offset = int(torch.Tensor.storage_offset(tensor)) * torch.Tensor.element_size(tensor)
    return first - offset if first else None


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Dispatch modes and a tracer of the program (`torch.jit.trace`) do not see what is called inside."""
    from torch.utils._python_dispatch import _disable_current_modes

    tracer = _tracer()
    with _disable_current_modes() if torch._C._len_torch_dispatch_stack() else contextlib.nullcontext():
        if tracer is not None:
            torch._C._set_tracing_state(None)  # type: ignore[attr-defined]
        try:
            yield
        finally:
            if tracer is not None:
                torch._C._set_tracing_state(tracer)  # type: ignore[attr-defined]


def _addressed(tensor: torch.Tensor) -> Extent:
    """The extent of a tensor by its address, without making a copy-on-write tensor take its own copy."""
    size = tensor.itemsize
    first = tensor.const_data_ptr()  # type: ignore[attr-defined]
    return Extent(first, tensor.shape, tuple([stride * size for stride in tensor.stride()]), size)


def _extent(tensor: torch.Tensor) -> Extent:
    return Extent(cast(int, tensor.storage_offset()), tensor.shape, tensor.stride(), 1).scaled(
        tensor.itemsize
    )


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether it can be asked directly: no subclass, no wrapper, no mode that would see the questions."""
    return (
        type(tensor) in PLAIN
        and not _function_modes()
        and _tracer() is None
        and tensor.layout is torch.strided
        and not tensor.is_nested
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    )


def _parts(tensor: torch.Tensor, name: str) -> Iterator[Part]:
    tensor = _unwrapped(tensor)
    components = _components(tensor)
    if components is None:
        yield _strided(tensor, name)
        return
    for own, component in components:
        yield from _parts(component, f"{name}.{own}" if name else own)


def _unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor under the wrappers of `torch.func` transforms."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return tensor


def _components(tensor: torch.Tensor) -> list[tuple[str, torch.Tensor]] | None:
    """The tensors that this one is made of; None when it is strided itself."""
    if type(tensor) not in PLAIN:
        held = _held(tensor)
        if held is not None:
            return held
    layout = tensor.layout
    if tensor.is_nested:
        return [("values", tensor.values())]
    if layout is torch.strided:
        return None
    if layout is torch.sparse_coo:
        return [("indices", tensor._indices()), ("values", tensor._values())]
    if layout in COMPRESSED_ROWS:
        return [*_indices(tensor, "crow_indices", "col_indices"), ("values", tensor.values())]
    if layout in COMPRESSED_COLUMNS:
        return [*_indices(tensor, "ccol_indices", "row_indices"), ("values", tensor.values())]
    name = str(layout).removeprefix("torch.")
    raise NoStorageError(f"a tensor of layout {name} keeps its memory to itself")


def _held(tensor: torch.Tensor) -> list[tuple[str, torch.Tensor]] | None:
    """What a wrapper subclass holds: by its own word, or, where its own memory is none, in its attributes."""
    if hasattr(type(tensor), "__tensor_flatten__"):
        try:
            names, _ = tensor.__tensor_flatten__()  # type: ignore[attr-defined]
            held = [(str(name), getattr(tensor, name)) for name in names]
        except Exception as error:
            reason = f"__tensor_flatten__ of {type(tensor).__name__} raised {type(error).__name__}"
            raise NoStorageError(f"{reason}, so that what it holds is not known") from None
        return [(name, one) for name, one in held if isinstance(one, torch.Tensor)]
    if not _is_hollow(tensor):
        return None
    return [(name, one) for name, one in vars(tensor).items() if isinstance(one, torch.Tensor)] or None


def _is_hollow(tensor: torch.Tensor) -> bool:
    """Whether it promises elements and has no byte (`_make_wrapper_subclass`)."""
    if tensor.layout is not torch.strided or is_copy_on_write(tensor):
        return False
    storage = _storage(tensor)
    return storage.device.type != "meta" and bool(storage.nbytes()) and address_of(tensor) is None


def _indices(tensor: torch.Tensor, *names: str) -> list[tuple[str, torch.Tensor]]:
    return [(name, getattr(torch.Tensor, name)(tensor)) for name in names]


def _strided(tensor: torch.Tensor, name: str) -> Part:
    storage = _storage(tensor)
    extent = Extent(0, (0,), (1,), 1) if torch.nn.parameter.is_lazy(tensor) else _whole_extent(tensor)
    dtype = str(tensor.dtype).removeprefix("torch.")
    address = address_of(tensor)
    return Part(
        name, extent, storage, storage.nbytes(), str(storage.device), address, dtype, _note(tensor, storage)
    )


def _whole_extent(tensor: torch.Tensor) -> Extent:
    """The extent of any strided tensor; a subclass may not answer for its own sizes."""
    numbers = (torch.Tensor.storage_offset(tensor), *torch.Tensor.size(tensor), *torch.Tensor.stride(tensor))
    if any(type(number) is not int for number in numbers):
        raise NoStorageError("its sizes are symbolic, and asking for them would fix them")
    offset, whole = numbers[0], numbers[1:]
    shape, strides = whole[: len(whole) // 2], whole[len(whole) // 2 :]
    return Extent(offset, shape, strides, 1).scaled(torch.Tensor.element_size(tensor))


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage:
    try:
        return torch.Tensor.untyped_storage(tensor)
    except (NotImplementedError, RuntimeError):
        raise NoStorageError(f"a {type(tensor).__name__} has no storage of its own") from None


def _note(tensor: torch.Tensor, storage: torch.UntypedStorage) -> str:
    if storage.device.type == "meta":
        return "meta: no memory behind it"
    if is_copy_on_write(tensor):
        return "copy-on-write"
    return "quantised" if tensor.is_quantized else ""
