"""Replaces numbers in a pickle and keeps every other byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tensafe.checkpoints.content import Content
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.pickled.literals import LITERALS
from tensafe.checkpoints.pickled.pickles import Pickle
from tensafe.checkpoints.pickled.stack import NAMES
from tensafe.checkpoints.pickled.stream import Stream

COPIED_AT_ONCE = 1 << 20
OTHER_LENGTHS = {"BINGET": 2, "LONG_BINGET": 5, "DUP": 1}
FRAME_NBYTES = 9
TEXT_NUMBERS = {"INT", "LONG"}


@dataclass(frozen=True, slots=True)
class Edit:
    """At this byte, so many bytes make way for others."""

    place: int
    length: int
    data: bytes


def edits_of(pickle: Pickle, numbers: Mapping[int, int]) -> list[Edit]:
    """The edits that put these numbers at these places, and take away the frames that counted the bytes."""
    edits = [_edit(pickle.content, place, number) for place, number in numbers.items()]
    if edits:
        edits += [Edit(place, FRAME_NBYTES, b"") for place in pickle.machine.frames]
    return sorted(edits, key=lambda edit: edit.place)


def _edit(content: Content, place: int, number: int) -> Edit:
    stream = Stream(content, place)
    name = NAMES[stream.byte()]
    if name in LITERALS:
        LITERALS[name](stream)
        length = stream.position - place
    elif name in OTHER_LENGTHS:
        length = OTHER_LENGTHS[name]
    else:
        raise CheckpointError(f"{content.what}: byte {place:,}: a number was expected, there is {name}")
    return Edit(place, length, f"I{number}\n".encode() if name in TEXT_NUMBERS else _pushed(number))


def _pushed(number: int) -> bytes:
    """The instruction that `pickle` would write for it."""
    if number < 1 << 8:
        return b"K" + number.to_bytes(1, "little")
    if number < 1 << 16:
        return b"M" + number.to_bytes(2, "little")
    if number < 1 << 31:
        return b"J" + number.to_bytes(4, "little")
    data = number.to_bytes(number.bit_length() // 8 + 1, "little")
    return b"\x8a" + len(data).to_bytes(1, "little") + data


def edited_nbytes(start: int, stop: int, edits: list[Edit]) -> int:
    return stop - start + sum(len(edit.data) - edit.length for edit in edits)


def edited(content: Content, start: int, stop: int, edits: list[Edit]) -> Iterator[bytes]:
    """The bytes from `start` to `stop` with the edits carried out."""
    place = start
    for edit in edits:
        yield from pieces(content, place, edit.place)
        yield edit.data
        place = edit.place + edit.length
    yield from pieces(content, place, stop)


def pieces(content: Content, start: int, stop: int) -> Iterator[bytes]:
    """The bytes of a range, a part at a time."""
    for place in range(start, stop, COPIED_AT_ONCE):
        yield content.read_at(place, min(COPIED_AT_ONCE, stop - place))
