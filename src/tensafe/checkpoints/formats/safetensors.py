"""`.safetensors` files: a JSON header, checked as strictly as the format's own reader does."""

from __future__ import annotations

import json
import math
from typing import Any

from tensafe.checkpoints.checkpoint import Checkpoint
from tensafe.checkpoints.content import Section, Source
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.pickled.placed import dense_strides
from tensafe.checkpoints.record import Record
from tensafe.checkpoints.shelf import Shelf
from tensafe.memory.extent import Extent
from tensafe.memory.map import NamedTensor

LENGTH_NBYTES = 8
LONGEST_HEADER = 32 << 20
MOST_SEPARATORS = 2_000_000  # of JSON; each may cost an object
DTYPES = {
    "BOOL": ("bool", 8),
    "U8": ("uint8", 8),
    "I8": ("int8", 8),
    "U16": ("uint16", 16),
    "I16": ("int16", 16),
    "U32": ("uint32", 32),
    "I32": ("int32", 32),
    "U64": ("uint64", 64),
    "I64": ("int64", 64),
    "F16": ("float16", 16),
    "BF16": ("bfloat16", 16),
    "F32": ("float32", 32),
    "F64": ("float64", 64),
    "C64": ("complex64", 64),
    "F8_E4M3": ("float8_e4m3fn", 8),
    "F8_E5M2": ("float8_e5m2", 8),
    "F8_E8M0": ("float8_e8m0fnu", 8),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8),
    "F6_E2M3": ("float6_e2m3", 6),
    "F6_E3M2": ("float6_e3m2", 6),
    "F4": ("float4_e2m1", 4),
}
"""The name and the bits of an element."""


def looks_like_safetensors(head: bytes, nbytes: int) -> bool:
    """Whether a length and a JSON object stand at the start; the length may be wrong."""
    return len(head) > LENGTH_NBYTES and head[LENGTH_NBYTES : LENGTH_NBYTES + 1] == b"{"


def read_safetensors(source: Source) -> Checkpoint:
    """The tensors of a header; raises `CheckpointError` where the format's own reader would refuse."""
    header, start = _header(source)
    facts = _metadata(header.pop("__metadata__", {}), source)
    records = [_record(name, entry, source, start) for name, entry in header.items()]
    _check_layout(records, source, start)
    facts["header"] = f"{start:,} bytes"
    shelf = Shelf({record.label: record for record in records})
    return Checkpoint(source.path, "safetensors", shelf, facts, [source])


def _header(source: Source) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(source.read_at(0, LENGTH_NBYTES), "little")
    if length > source.nbytes - LENGTH_NBYTES:
        raise CheckpointError(
            f"{source.path}: byte 0: a header of {length:,} bytes, the file has {source.nbytes:,}: "
            "truncated or damaged"
        )
    if length > LONGEST_HEADER:
        raise CheckpointError(
            f"{source.path}: a header of {length:,} bytes; tensafe reads up to {LONGEST_HEADER:,}"
        )
    raw = source.read_at(LENGTH_NBYTES, length)
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > MOST_SEPARATORS:
        raise CheckpointError(f"{source.path}: its header has too many parts for a list of tensors")
    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{source.path}: its header is no JSON: {_short(error)}") from None
    if not isinstance(header, dict):
        raise CheckpointError(f"{source.path}: its header is no JSON object")
    return header, LENGTH_NBYTES + length


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _short(error: Exception) -> str:
    return (
        "it is nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0][:120]
    )


def _metadata(found: object, source: Source) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise CheckpointError(f"{source.path}: its __metadata__ is no object of strings")
    return {f"metadata: {str(key)[:60]}": value[:200] for key, value in list(found.items())[:20]}


def _record(name: str, entry: Any, source: Source, start: int) -> Record:
    where = f"{source.path}: tensor {name[:200]}"
    try:
        dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise CheckpointError(f"{where}: dtype, shape and two data_offsets were expected") from None
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise CheckpointError(f"{where}: its dtype {str(dtype)[:40]!r} is not known")
    if not all(type(size) is int and size >= 0 for size in (*shape, begin, end)):
        raise CheckpointError(f"{where}: a shape or an offset that is no natural number")
    name_of_dtype, bits = DTYPES[dtype]
    expected = _nbytes(shape, bits, where)
    if end - begin != expected:
        raise CheckpointError(
            f"{where}: {dtype} of shape {shape} takes {expected:,} bytes, "
            f"its data_offsets span {end - begin:,}"
        )
    if start + end > source.nbytes:
        raise CheckpointError(
            f"{where}: its data ends at byte {start + end:,}, the file at {source.nbytes:,}: "
            "truncated or damaged"
        )
    record = Record(name, expected, Section(source, start + begin, expected, where))
    record.tensors.append(_tensor(name, shape, name_of_dtype, bits, expected))
    return record


def _nbytes(shape: tuple[int, ...], bits: int, where: str) -> int:
    if len(shape) > 64 or any(size.bit_length() > 63 for size in shape):
        raise CheckpointError(f"{where}: an absurd shape")
    total = math.prod(shape) * bits
    if total % 8:
        raise CheckpointError(f"{where}: its elements end within a byte")
    return total // 8


def _tensor(name: str, shape: tuple[int, ...], dtype: str, bits: int, nbytes: int) -> NamedTensor:
    strides = dense_strides(shape)
    if bits % 8:  # elements share bytes
        extent = Extent(0, (nbytes,), (1,), 1)
    else:
        extent = Extent(0, shape, tuple(stride * bits // 8 for stride in strides), bits // 8)
    return NamedTensor((name,), shape, strides, dtype, extent)


def _check_layout(records: list[Record], source: Source, start: int) -> None:
    """No two may overlap, and nothing may lie between or behind them."""
    place = start
    for record in sorted(records, key=_span):
        assert isinstance(record.content, Section)
        begin = record.content.start
        if begin != place:
            words = "a hole before" if begin > place else "it overlaps the one before"
            raise CheckpointError(
                f"{source.path}: tensor {record.label[:200]}: {words}: "
                f"it begins at byte {begin:,}, not {place:,}"
            )
        place = begin + record.nbytes
    if place != source.nbytes:
        raise CheckpointError(
            f"{source.path}: the tensors end at byte {place:,}, the file at {source.nbytes:,}: "
            f"{source.nbytes - place:,} bytes belong to none"
        )


def _span(record: Record) -> tuple[int, int]:
    assert isinstance(record.content, Section)
    return record.content.start, record.nbytes
