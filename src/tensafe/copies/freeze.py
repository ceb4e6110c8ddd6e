"""`tensafe.freeze`: storages that refuse every write, through whatever alias it comes."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import torch

from tensafe.copies.leaves import attribute_with_tensor, children, leaves
from tensafe.errors import TensafeError
from tensafe.memory.from_numpy import is_array
from tensafe.memory.from_torch import NoStorageError, parts_of

T = TypeVar("T")


class FreezeError(TensafeError):
    """Something that cannot be frozen; nothing has been."""


def freeze(x: T) -> T:
    """Make the memory of every tensor and array in `x` refuse writes, and return `x` itself.

    `x` is a tensor, an array, a module, an optimizer, or a tree of them (dictionaries, lists, tuples, sets,
    dataclasses). What is none of these is left as it is inside a tree, with the tensors in it: freeze those.

    From now on every write into a frozen storage raises `RuntimeError` at the writing line, and nothing is
    written: in-place methods, `out=`, `x[...] =`, foreach and fused optimizers, `.data`,
    views taken before and after, the storage itself. Reads cost nothing and give ordinary tensors; gradients
    flow. PyTorch's own words are *Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor)*.

    A frozen storage stays frozen: thaw by copying (`x.clone()`, `tensafe.copy`, `tensafe.deepcopy`).

    What asks for a pointer that may write is refused too, though it only reads: `.numpy()` and `np.asarray`,
    `.data_ptr()`, DLPack, `pickle` and `torch.save` (use `tensafe.dumps`), LSTM layers with frozen weights,
    batch norm in training (it writes), `channel_shuffle`, some reads of sparse and quantised tensors,
    kernels made by `torch.compile`. Memory that NumPy was given before (`x.numpy()`, `torch.from_numpy(a)`)
    is still written through that array.

    An array is made non-writeable, with every array that it is a view of; a view that was taken of them
    before keeps its own flag and still writes, as NumPy has no way to find it. Whoever owns the array can
    set the flag again.

    Raises `FreezeError`, and freezes nothing, where a tensor keeps its memory to itself (MKL-DNN), where `x`
    is another object that holds tensors, or where this torch has no read-only storages.
    """
    _refuse_holder(x)
    storages: dict[int, torch.UntypedStorage] = {}
    arrays: list[Any] = []
    for path, leaf in leaves(x, "x"):
        if is_array(leaf):
            arrays.append(leaf)
        else:
            storages.update(_storages_of(leaf, path))
    for array in arrays:
        storages.update(_freezable_base(array))
    for storage in storages.values():
        freeze_storage(storage)
    for array in arrays:
        _freeze_array(array)
    return x


def _refuse_holder(x: object) -> None:
    """Nothing of an object that is no container would be frozen: its owner must not think that all is."""
    if isinstance(x, torch.Tensor) or is_array(x) or next(children(x), None) is not None:
        return
    name = attribute_with_tensor(x)
    if name is not None:
        kind = type(x).__name__
        raise FreezeError(f"x is a {kind} that holds a tensor in `{name}`: freeze x.{name} instead")


def freeze_storage(storage: torch.UntypedStorage) -> None:
    """Mark one storage; there is no way back."""
    tensor = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    mark(tensor)


def mark(tensor: torch.Tensor) -> None:
    """Make the storage of a strided tensor refuse writes.

    Internal to torch (`_set_throw_on_mutable_data_ptr`), there since 2.1.
    """
    setter = getattr(torch._C, "_set_throw_on_mutable_data_ptr", None)
    if setter is None:
        raise FreezeError(f"torch {torch.__version__} has no read-only storages: use tensafe.readonly")
    setter(tensor)


def _storages_of(tensor: torch.Tensor, path: str) -> dict[int, torch.UntypedStorage]:
    try:
        parts = parts_of(tensor)
    except NoStorageError as error:
        raise FreezeError(f"{path} cannot be frozen: {error}; leave it out") from None
    storages = [part.storage for part in parts if part.device != "meta" and part.storage_nbytes]
    if storages and not hasattr(torch._C, "_set_throw_on_mutable_data_ptr"):
        raise FreezeError(f"torch {torch.__version__} has no read-only storages: use tensafe.readonly")
    return {id(storage): storage for storage in storages}


def _freezable_base(array: Any) -> dict[int, torch.UntypedStorage]:
    """The storage below an array that was made from a tensor."""
    base = _chain(array)[-1].base
    if isinstance(base, torch.Tensor):
        return _storages_of(base, "the tensor below an array")
    return {}


def _freeze_array(array: Any) -> None:
    for one in _chain(array):
        one.setflags(write=False)


def _chain(array: Any) -> list[Any]:
    """The array, the array that it is a view of, and so on."""
    numpy = sys.modules["numpy"]
    chain = [array]
    while isinstance(chain[-1].base, numpy.ndarray):
        chain.append(chain[-1].base)
    return chain
