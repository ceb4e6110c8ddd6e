"""JSON with the place of each value in its text, so that one value can be replaced and no other byte."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(strict=False)
_WORD = re.compile(r"[^\s,\]}]+")


@dataclass(frozen=True, slots=True)
class Spot:
    """A value and its place: `members` of an object, `items` of an array, `text` of a string."""

    start: int
    end: int
    members: Mapping[str, Spot] = field(default_factory=dict)
    items: tuple[Spot, ...] = ()
    text: str | None = None


def spots(text: str) -> Spot:
    """The places in a text that `json.loads` accepts."""
    return _value(text, _skip(text, 0))


def _value(text: str, start: int) -> Spot:
    opening = text[start]
    if opening == '"':
        value, end = _DECODER.raw_decode(text, start)
        return Spot(start, end, text=value)
    if opening == "[":
        return _array(text, start)
    if opening == "{":
        return _object(text, start)
    word = _WORD.match(text, start)
    return Spot(start, word.end() if word else start + 1)


def _array(text: str, start: int) -> Spot:
    items = []
    at = _skip(text, start + 1)
    while text[at] != "]":
        items.append(_value(text, at))
        at = _skip_comma(text, items[-1].end)
    return Spot(start, at + 1, items=tuple(items))


def _object(text: str, start: int) -> Spot:
    members = {}
    at = _skip(text, start + 1)
    while text[at] != "}":
        key = _value(text, at)
        member = _value(text, _skip(text, _skip(text, key.end) + 1))
        members[key.text or ""] = member
        at = _skip_comma(text, member.end)
    return Spot(start, at + 1, members=members)


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _skip_comma(text: str, at: int) -> int:
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at
