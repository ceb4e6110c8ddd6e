"""The instructions of a pickle that carry a plain value: numbers, texts, bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tensafe.checkpoints.pickled.stream import Stream
from tensafe.checkpoints.pickled.values import Payload, Value

LONGEST_TEXT = 4096  # bytes of a text that is kept; of a longer one only its place
LONGEST_HEAD = 64
LONGEST_NUMBER = 1024  # bytes, or digits


def number_line(stream: Stream) -> Value:
    """INT and LONG: decimal digits; INT also spells True and False."""
    text = stream.line()
    if text in (b"00", b"01"):
        return text == b"01"
    if len(text) > LONGEST_NUMBER:
        raise stream.fault("a number of too many digits")
    try:
        return int(text.rstrip(b"L"))
    except ValueError:
        raise stream.fault(f"a decimal number was expected, there is {text[:20]!r}") from None


def float_line(stream: Stream) -> Value:
    text = stream.line()
    try:
        return float(text[:LONGEST_NUMBER])
    except ValueError:
        raise stream.fault(f"a number was expected, there is {text[:20]!r}") from None


def long_number(size: int) -> Callable[[Stream], Value]:
    """LONG1 and LONG4: so many bytes of length, then a little-endian number."""

    def read(stream: Stream) -> Value:
        length = int.from_bytes(stream.read(size), "little", signed=size == 4)
        if not 0 <= length <= LONGEST_NUMBER:
            raise stream.fault(f"a number of {length:,} bytes")
        return int.from_bytes(stream.read(length), "little", signed=True)

    return read


def packed(form: str) -> Callable[[Stream], Value]:
    """A number of fixed size."""
    shape = struct.Struct(form)

    def read(stream: Stream) -> Value:
        value: Value = shape.unpack(stream.read(shape.size))[0]
        return value

    return read


def text(size: int) -> Callable[[Stream], Value]:
    """Counted UTF-8; a long one stays where it is."""

    def read(stream: Stream) -> Value:
        length = int.from_bytes(stream.read(size), "little")
        if length > LONGEST_TEXT:
            return _payload(stream, length, "utf-8")
        return _decoded(stream.read(length), stream)

    return read


def raw(size: int, signed: bool = False) -> Callable[[Stream], Value]:
    """Counted bytes, not read."""

    def read(stream: Stream) -> Value:
        length = int.from_bytes(stream.read(size), "little", signed=signed)
        if length < 0:
            raise stream.fault(f"bytes of a negative length, {length:,}")
        return _payload(stream, length, "raw")

    return read


def text_line(stream: Stream) -> Value:
    """UNICODE: a line of raw-unicode-escape."""
    start = stream.position
    line = stream.line()
    if len(line) > LONGEST_TEXT:
        return Payload(start, len(line), line[:LONGEST_HEAD], "raw-unicode-escape")
    try:
        return str(line, "raw-unicode-escape")
    except UnicodeDecodeError:
        raise stream.fault("a text that is no raw-unicode-escape", start) from None


def quoted_line(stream: Stream) -> Value:
    """STRING: a line with a Python 2 literal; names come as text."""
    start = stream.position
    line = stream.line().strip()
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
        raise stream.fault("a string in quotes was expected", start)
    if b"\\" in line or len(line) > LONGEST_TEXT or not line.isascii():
        return Payload(start, len(line), line[:LONGEST_HEAD], "quoted")
    return line[1:-1].decode("ascii")


def old_string(size: int, signed: bool = False) -> Callable[[Stream], Value]:
    """BINSTRING and SHORT_BINSTRING of Python 2: a name comes as text, anything else as bytes."""

    def read(stream: Stream) -> Value:
        length = int.from_bytes(stream.read(size), "little", signed=signed)
        if length < 0:
            raise stream.fault(f"a string of a negative length, {length:,}")
        found = _payload(stream, length, "raw")
        if length <= LONGEST_HEAD and found.head.isascii():
            return found.head.decode("ascii")
        return found

    return read


def _payload(stream: Stream, length: int, encoding: str) -> Payload:
    start = stream.position
    if length > stream.left:
        raise stream.fault(f"{length:,} bytes were expected here, {stream.left:,} are left")
    head = stream.read(min(length, LONGEST_HEAD))
    stream.skip(length - len(head))
    return Payload(start, length, head, encoding)


def _decoded(data: bytes, stream: Stream) -> str:
    try:
        return str(data, "utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise stream.fault("a text that is no UTF-8", stream.position - len(data)) from None


LITERALS: dict[str, Callable[[Stream], Value]] = {
    "INT": number_line,
    "BININT": packed("<i"),
    "BININT1": packed("<B"),
    "BININT2": packed("<H"),
    "LONG": number_line,
    "LONG1": long_number(1),
    "LONG4": long_number(4),
    "STRING": quoted_line,
    "BINSTRING": old_string(4, signed=True),
    "SHORT_BINSTRING": old_string(1),
    "BINBYTES": raw(4),
    "SHORT_BINBYTES": raw(1),
    "BINBYTES8": raw(8),
    "BYTEARRAY8": raw(8),
    "UNICODE": text_line,
    "SHORT_BINUNICODE": text(1),
    "BINUNICODE": text(4),
    "BINUNICODE8": text(8),
    "FLOAT": float_line,
    "BINFLOAT": packed(">d"),
    "NONE": lambda stream: None,
    "NEWTRUE": lambda stream: True,
    "NEWFALSE": lambda stream: False,
}
"""By the instruction's name: what reads its value."""
