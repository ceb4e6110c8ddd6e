"""Pieces of a line with a style each, and the plain text they give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

Style = Literal["", "error", "warning", "notice", "strong", "ruler", "primary", "secondary"]
Piece = tuple[str, Style]
Line = tuple[Piece, ...]

COLOURS: dict[Style, str] = {
    "error": "bold red",
    "warning": "bold yellow",
    "notice": "bold cyan",
    "strong": "bold",
    "ruler": "blue",
    "primary": "bold red",
    "secondary": "bold blue",
}


def plain(lines: Iterable[Line]) -> str:
    """The text alone, each line ended."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)
