"""Bytes that lie within a pickle: arrays, and the tensors that `pickle.dump` writes."""

from __future__ import annotations

from tensafe.checkpoints.content import Content, InMemory, Section
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.pickled.pickles import Pickle
from tensafe.checkpoints.pickled.placed import Placed
from tensafe.checkpoints.pickled.values import List, Made, Payload, Value
from tensafe.checkpoints.pickled.walk import Found
from tensafe.checkpoints.record import Record

LONGEST_DECODED = 32 << 20


def inline_record(found: Found, pickle: Pickle, name: str) -> Record | str | None:
    """The record of a tensor whose bytes are in the pickle itself, or why there is none, or nothing."""
    placed = found.what
    if not isinstance(placed, Placed):
        return None
    if placed.storage is None:
        return _without_memory(placed, found)
    if placed.dtype in ("object", "record") and isinstance(placed.storage, List):
        return None  # its elements are looked at one by one
    try:
        content = bytes_of(placed.storage, pickle)
    except CheckpointError as error:
        return str(error)
    if content is None:
        return "its bytes are not in the file"
    return Record(
        f"{name}, byte {_place(placed.storage):,}", content.nbytes, content, notes=("in the pickle",)
    )


def _without_memory(placed: Placed, found: Found) -> Record:
    from tensafe.checkpoints.pickled.dtypes import ITEMSIZES

    itemsize = ITEMSIZES.get(placed.dtype or "", 1)
    reach = 1 + sum(stride * (size - 1) for size, stride in zip(placed.shape, placed.strides, strict=True))
    nbytes = 0 if 0 in placed.shape else reach * itemsize
    return Record(f"meta: {found.names[0]}", nbytes, None, "meta", notes=("meta: no bytes",))


def bytes_of(value: Value, pickle: Pickle) -> Content | None:
    """The bytes that a value stands for, None when it stands for none; raises `CheckpointError`."""
    what = pickle.content.what
    if isinstance(value, Made) and value.positional:
        if value.name == "_codecs.encode":
            return _encoded(value.positional[0], pickle)
        if value.name in ("builtins.bytes", "builtins.bytearray"):
            return bytes_of(value.positional[0], pickle)
    if isinstance(value, Made) and value.name in ("builtins.bytes", "builtins.bytearray", "_codecs.encode"):
        return InMemory(b"", what)
    if isinstance(value, str):  # of Python 2
        return InMemory(value.encode("latin-1", "replace"), what)
    if not isinstance(value, Payload):
        return None
    if value.encoding == "raw":
        return Section(pickle.content, value.start, value.nbytes)
    if value.encoding == "quoted":
        text = _text(value, pickle)[1:-1]
        return InMemory(text.decode("unicode_escape").encode("latin-1", "replace"), what)
    return _encoded(value, pickle)


def _encoded(value: Value, pickle: Pickle) -> Content | None:
    """`_codecs.encode(text, "latin1")`: how protocols 0 to 2 write bytes."""
    if isinstance(value, Payload) and value.encoding in ("utf-8", "raw-unicode-escape"):
        value = _text(value, pickle).decode(value.encoding, "replace")
    if not isinstance(value, str):
        return None
    return InMemory(value.encode("latin-1", "replace"), pickle.content.what)


def _text(value: Payload, pickle: Pickle) -> bytes:
    if value.nbytes > LONGEST_DECODED:
        raise CheckpointError(
            f"{value.nbytes:,} bytes written as text; tensafe decodes up to {LONGEST_DECODED:,}"
        )
    return pickle.content.read_at(value.start, value.nbytes)


def _place(value: Value) -> int:
    if isinstance(value, Payload):
        return value.start
    if isinstance(value, Made):
        return (
            _place(value.positional[0])
            if value.positional and not isinstance(value.positional[0], str)
            else value.place
        )
    return 0
