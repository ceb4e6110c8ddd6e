"""Source text as terminal cells: control characters made visible, wide and combining ones measured."""

from __future__ import annotations

import unicodedata

TAB = "    "
_ESCAPED = frozenset(["Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"])
_KEPT_FORMAT_CHARACTERS = "\u200c\u200d"  # joiners, without which some scripts and emoji fall apart


def visible(character: str) -> str:
    """The character as it may be printed: a tab as spaces, what could steer a terminal escaped."""
    if character == "\t":
        return TAB
    if unicodedata.category(character) not in _ESCAPED or character in _KEPT_FORMAT_CHARACTERS:
        return character
    return character.encode("unicode_escape").decode("ascii")


def printable(text: str) -> str:
    """A text of one line, safe to print."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(visible, text))


def cells(text: str) -> int:
    """How many terminal columns a printable text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
