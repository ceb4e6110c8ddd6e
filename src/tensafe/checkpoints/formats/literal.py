"""Reads the Python literal in the header of a `.npy` file, in bounded depth."""

from __future__ import annotations

import re
from collections.abc import Iterator

TOKEN = re.compile(
    r"""\s*(?:(?P<mark>[(){}\[\],:])|(?P<text>'[^'\\]*'|"[^"\\]*")|(?P<number>\d{1,30})L?|(?P<word>True|False|None))"""
)
WORDS = {"True": True, "False": False, "None": None}
DEEPEST = 20
CLOSING = {"(": ")", "[": "]"}


def literal(text: str) -> object:
    """A dict, list or tuple of strings, numbers and words; raises `ValueError` for anything else."""
    tokens = list(_tokens(text))
    value, place = _value(tokens, 0, 0)
    if place != len(tokens):
        raise ValueError("something stands behind the literal")
    return value


def _tokens(text: str) -> Iterator[str]:
    place = 0
    text = text.rstrip()
    while place < len(text):
        found = TOKEN.match(text, place)
        if found is None:
            raise ValueError(f"no literal begins with {text[place : place + 10]!r}")
        place = found.end()
        yield found.group(found.lastgroup or 0)


def _value(tokens: list[str], place: int, depth: int) -> tuple[object, int]:
    if place >= len(tokens):
        raise ValueError("it ends too early")
    if depth > DEEPEST:
        raise ValueError("it is nested too deeply")
    token = tokens[place]
    if token == "{":
        return _entries(tokens, place + 1, depth + 1)
    if token in CLOSING:
        items, place, has_comma = _items(tokens, place + 1, CLOSING[token], depth + 1)
        if token == "[":
            return items, place
        return (tuple(items) if has_comma or not items else items[0]), place
    if token[0] in "'\"":
        return token[1:-1], place + 1
    if token in WORDS:
        return WORDS[token], place + 1
    if token.isdigit():
        return int(token), place + 1
    raise ValueError(f"no value begins with {token!r}")


def _items(tokens: list[str], place: int, closing: str, depth: int) -> tuple[list[object], int, bool]:
    items: list[object] = []
    has_comma = False
    while place < len(tokens) and tokens[place] != closing:
        item, place = _value(tokens, place, depth)
        items.append(item)
        if place < len(tokens) and tokens[place] == ",":
            has_comma, place = True, place + 1
        elif place < len(tokens) and tokens[place] != closing:
            raise ValueError("a comma was expected")
    if place >= len(tokens):
        raise ValueError("it ends too early")
    return items, place + 1, has_comma


def _entries(tokens: list[str], place: int, depth: int) -> tuple[object, int]:
    found: dict[object, object] = {}
    while place < len(tokens) and tokens[place] != "}":
        key, place = _value(tokens, place, depth)
        if not isinstance(key, str) or place >= len(tokens) or tokens[place] != ":":
            raise ValueError("a key and a colon were expected")
        found[key], place = _value(tokens, place + 1, depth)
        if place < len(tokens) and tokens[place] == ",":
            place += 1
        elif place < len(tokens) and tokens[place] != "}":
            raise ValueError("a comma was expected")
    if place >= len(tokens):
        raise ValueError("it ends too early")
    return found, place + 1
