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


def loggable(text: str) -> str:
    """A text of one line, safe in a log that GitHub's runner reads: `##[error]` in it would be a command."""
    return printable(text).replace("##[", r"#\x23[")


def begins_plainly(line: str) -> str:
    """A line that begins with somebody's words, not taken for a command of a workflow: `::error::` is one."""
    return rf"\x3a{line[1:]}" if line.startswith("::") else line


def cells(text: str) -> int:
    """How many terminal columns a printable text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
