"""`.npy` files and `.npz` archives of them; object arrays are pickles, and are read as such."""

from __future__ import annotations

import math

from tensafe.checkpoints.checkpoint import Checkpoint
from tensafe.checkpoints.content import Content, Source
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.formats.literal import literal
from tensafe.checkpoints.formats.zip_directory import ZipDirectory
from tensafe.checkpoints.pickled.dtypes import array_dtype
from tensafe.checkpoints.pickled.path import Path
from tensafe.checkpoints.pickled.placed import LARGEST, MOST_DIMENSIONS, dense_strides
from tensafe.checkpoints.record import Record
from tensafe.checkpoints.shelf import Shelf
from tensafe.memory.extent import Extent
from tensafe.memory.map import NamedTensor

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 1 << 20


def is_npz(directory: ZipDirectory) -> bool:
    return bool(directory.records) and all(name.endswith(".npy") for name in directory.records)


def read_npy(source: Source, root: Path) -> Checkpoint:
    """One array; raises `CheckpointError`."""
    shelf = Shelf()
    version = _read_array(shelf, source, "data", "array", root)
    return Checkpoint(source.path, "npy", shelf, {"npy version": version}, [source])


def read_npz(source: Source, directory: ZipDirectory) -> Checkpoint:
    """An archive of arrays; raises `CheckpointError`."""
    shelf = Shelf()
    for name, entry in directory.records.items():
        label = name.removesuffix(".npy")
        _read_array(shelf, directory.open(name), name, label, Path(None, label))
        if not entry.is_stored and name in shelf.records:
            shelf.records[name].notes += (f"compressed to {entry.packed_nbytes:,} bytes",)
    is_packed = any(not entry.is_stored for entry in directory.records.values())
    return Checkpoint(source.path, "npz, compressed" if is_packed else "npz", shelf, {}, [source])


def _read_array(shelf: Shelf, content: Content, label: str, name: str, root: Path) -> str:
    shape, is_fortran, (dtype, itemsize), start, version = _header(content)
    if dtype == "object":
        shelf.complain(
            f"{name}: an object array: its elements are a pickle, loaded with allow_pickle=True only"
        )
        shelf.read(content, f"{label}, a pickle", root, start=start)
        return version
    nbytes = math.prod(shape) * itemsize
    if nbytes != content.nbytes - start:
        shelf.complain(
            f"{name}: an array of {shape} {dtype} takes {nbytes:,} bytes, "
            f"{content.nbytes - start:,} follow the header"
        )
        return version
    strides = dense_strides(shape, is_fortran)
    extent = Extent(0, shape, tuple(stride * itemsize for stride in strides), itemsize)
    record = Record(label, nbytes, _Behind(content, start), dtype=dtype, itemsize=itemsize)
    record.tensors.append(NamedTensor((name,), shape, strides, dtype, extent, "array"))
    shelf.records[label] = record
    return version


class _Behind:
    """What follows the header."""

    def __init__(self, content: Content, start: int) -> None:
        self._content, self._start = content, start
        self.what, self.nbytes = content.what, content.nbytes - start

    def read_at(self, offset: int, nbytes: int) -> bytes:
        return self._content.read_at(self._start + offset, nbytes)


def _header(content: Content) -> tuple[tuple[int, ...], bool, tuple[str, int], int, str]:
    """Shape, order, dtype with itemsize, where the data begins, and the version of the format."""
    if content.nbytes < 10 or content.read_at(0, len(MAGIC)) != MAGIC:
        raise CheckpointError(f"{content.what}: byte 0: an array's header was expected")
    major, minor = content.read_at(len(MAGIC), 2)
    if major not in (1, 2, 3):
        raise CheckpointError(f"{content.what}: version {major}.{minor} of the npy format is not known")
    width = 2 if major == 1 else 4
    length = int.from_bytes(content.read_at(8, width), "little")
    if length > LONGEST_HEADER:
        raise CheckpointError(f"{content.what}: byte 8: a header of {length:,} bytes")
    raw = content.read_at(8 + width, length)
    try:
        found = literal(raw.decode("utf-8" if major == 3 else "latin-1"))
    except ValueError as error:
        raise CheckpointError(f"{content.what}: its header is damaged: {error}") from None
    shape, is_fortran, dtype = _described(found, content)
    return shape, is_fortran, dtype, 8 + width + length, f"{major}.{minor}"


def _described(found: object, content: Content) -> tuple[tuple[int, ...], bool, tuple[str, int]]:
    if not isinstance(found, dict) or set(found) != {"descr", "fortran_order", "shape"}:
        raise CheckpointError(
            f"{content.what}: its header has other entries than descr, fortran_order and shape"
        )
    shape, is_fortran, dtype = found["shape"], found["fortran_order"], array_dtype(found["descr"])
    if not isinstance(shape, tuple) or not all(type(size) is int for size in shape):
        raise CheckpointError(f"{content.what}: its shape is no tuple of numbers")
    if len(shape) > MOST_DIMENSIONS or (0 not in shape and math.prod(shape) > LARGEST):
        raise CheckpointError(f"{content.what}: its shape is absurd")
    if dtype is None or not isinstance(is_fortran, bool):
        raise CheckpointError(f"{content.what}: its dtype {str(found['descr'])[:60]!r} is not known")
    return shape, is_fortran, dtype
