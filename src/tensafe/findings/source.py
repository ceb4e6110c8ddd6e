"""A source file as text and as lines, decoded and counted the way Python does it."""

from __future__ import annotations

import io
import re
import tokenize

_LINE_END = re.compile(r"\r\n|\r|\n")


def decode(data: bytes) -> tuple[str, str]:
    """The text of a source file and the encoding that gives the bytes back, byte order mark included.

    Line ends stay as they are. Raises ValueError when the bytes are no Python source.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, LookupError) as error:
        raise ValueError(str(error)) from None
    if "\0" in text:
        raise ValueError("it holds NUL bytes")
    return text, encoding


def split_lines(text: str) -> list[str]:
    """The lines with their ends; unlike `str.splitlines`, a form feed or U+2028 does not end a line."""
    lines = []
    start = 0
    for end in _LINE_END.finditer(text):
        lines.append(text[start : end.end()])
        start = end.end()
    if start < len(text):
        lines.append(text[start:])
    return lines
