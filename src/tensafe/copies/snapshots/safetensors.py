"""The safetensors format, written and read by hand: a header in JSON, then the bytes of the tensors.

The format: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch

from tensafe.errors import TensafeError
from tensafe.memory.from_torch import address_of

_NAMES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "complex64": "C64",
}
CODES = {getattr(torch, name): code for name, code in _NAMES.items() if hasattr(torch, name)}
DTYPES = {code: dtype for dtype, code in CODES.items()}
_OTHER = "tensafe.dtypes"
"""Metadata: tensors of a dtype that the format does not know are stored as bytes, and their dtype is here."""
_CHUNK_NBYTES = 64 << 20
_LONGEST_HEADER = 1 << 30


@dataclass(frozen=True)
class Stored:
    """What a file holds."""

    tensors: dict[str, torch.Tensor]
    metadata: dict[str, str]


def write_tensors(path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> None:
    """Write beside, flush to the disk, rename; an older file of that name stays whole until then.

    Raises `TensafeError` when the system refuses, with its reason.
    """
    header, order = _header(tensors, metadata)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a rename would put a file in the place of a device
        raise TensafeError(f"{path} cannot be written: it is no regular file")
    beside = target.with_name(f".{secrets.token_hex(8)}.tmp")  # short, as a name may be as long as one can be
    try:
        try:
            with beside.open("xb") as file:
                _write(file, header)
                for name in order:
                    _write_tensor(file, tensors[name])
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                beside.chmod(target.stat().st_mode & 0o7777)
            beside.replace(target)
            _flush_folder(target.parent)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise TensafeError(f"{path} cannot be written: {error.strerror or error}") from error


def _header(tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> tuple[bytes, list[str]]:
    """The header with its length, and the tensors in the order of their bytes: the widest first, aligned."""
    order = sorted(tensors, key=lambda name: (-_width(tensors[name]), name))
    others = {name: str(one.dtype) for name, one in tensors.items() if one.dtype not in CODES}
    told: dict[str, Any] = {"__metadata__": {**metadata, _OTHER: json.dumps(others)} if others else metadata}
    reached = 0
    for name in order:
        one = tensors[name]
        stop = reached + one.nbytes
        known = one.dtype in CODES
        shape = list(one.shape) if known else [*one.shape, one.itemsize]
        told[name] = {"dtype": CODES.get(one.dtype, "U8"), "shape": shape, "data_offsets": [reached, stop]}
        reached = stop
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, order


def _width(one: torch.Tensor) -> int:
    return one.itemsize if one.dtype in CODES else 1


def _write_tensor(file: BinaryIO, one: torch.Tensor) -> None:
    dense = one.detach().resolve_conj().resolve_neg().cpu().contiguous()
    with _memory(dense) as view:
        for start in range(0, len(view), _CHUNK_NBYTES):
            _write(file, view[start : start + _CHUNK_NBYTES])


def _write(file: BinaryIO, data: bytes | memoryview) -> None:
    file.write(data)


def _flush_folder(folder: Path) -> None:
    """Make the new name last; some systems and file systems have no such call."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


@contextlib.contextmanager
def _memory(dense: torch.Tensor) -> Iterator[memoryview]:
    """The bytes of a dense tensor on the CPU; a copy-on-write one stays what it is."""
    if not dense.nbytes:
        yield memoryview(b"")
        return
    start = address_of(dense)
    offset = int(dense.storage_offset()) * dense.itemsize
    address = start + offset if start is not None else dense.data_ptr()
    array = (ctypes.c_char * dense.nbytes).from_address(address)
    view = memoryview(array).cast("B")
    try:
        yield view
    finally:
        view.release()


def read_tensors(path: Path) -> Stored:
    """All tensors of a file, in fresh memory; raises `TensafeError` for what is no such file."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            try:
                return _read(file, size)
            except (KeyError, ValueError, TypeError, AttributeError, struct.error, RecursionError) as error:
                raise TensafeError(f"{path} is no whole safetensors file: {error}") from None
    except OSError as error:
        raise TensafeError(f"{path} cannot be read: {error.strerror or error}") from error


def _read(file: BinaryIO, size: int) -> Stored:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > min(_LONGEST_HEADER, size - 8):
        raise ValueError(f"its header is said to have {length:,} bytes")
    told = json.loads(file.read(length))
    metadata = told.pop("__metadata__", {})
    others = json.loads(metadata.get(_OTHER, "{}"))
    tensors = {}
    for name, entry in told.items():
        start, stop = entry["data_offsets"]
        one = _room(entry, others.get(name))
        if one.nbytes != stop - start or not 0 <= start <= stop <= size - 8 - length:
            raise ValueError(f"the bytes of {name} are not where its header says")
        file.seek(8 + length + start)
        _read_into(file, one, name)
        tensors[name] = one
    return Stored(tensors, metadata)


def _room(entry: dict[str, Any], other: str | None) -> torch.Tensor:
    shape = [int(number) for number in entry["shape"]]
    if any(number < 0 for number in shape):
        raise ValueError("a shape is negative")
    start, stop = entry["data_offsets"]
    if other is None:
        dtype = DTYPES[entry["dtype"]]
    else:
        dtype = getattr(torch, other.removeprefix("torch."))
        shape = shape[:-1]
    count = 1
    for number in shape:
        count *= number
    if not isinstance(dtype, torch.dtype) or count * dtype.itemsize != stop - start:
        raise ValueError("a shape does not fit its bytes")
    return torch.empty(shape, dtype=dtype)


def _read_into(file: BinaryIO, one: torch.Tensor, name: str) -> None:
    with _memory(one) as view:
        reached = 0
        while reached < len(view):
            got = file.readinto(view[reached : reached + _CHUNK_NBYTES])  # type: ignore[attr-defined]
            if not got:
                raise ValueError(f"it ends within {name}")
            reached += got
