"""Glob patterns of `exclude` and `per-file-ignores`: they match a path, or a folder above it."""

from __future__ import annotations

import functools
import re
from pathlib import PurePath


def matches(path: PurePath, pattern: str) -> bool:
    """Whether a pattern means this path, given from the folder of the settings.

    A pattern without a slash means a name at any depth (`tests`, `*_pb2.py`); one with a slash is read from
    the folder of the settings (`src/old/*`, `**/vendored`). `*` stays within a name, `**` does not. What
    means a folder means all that lies in it.
    """
    expression = _compiled(pattern)
    if "/" not in pattern.strip("/"):
        return any(expression.fullmatch(part) for part in path.parts)
    return any(expression.fullmatch(above.as_posix()) for above in (path, *path.parents))


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(map(_translated, _PIECES.findall(pattern.removeprefix("./").strip("/")))))


_PIECES = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|\[!?[^\]]+\]|.", re.S)


def _translated(piece: str) -> str:
    if piece == "**/":
        return "(?:.*/)?"
    if piece == "/**":
        return "(?:/.*)?"
    if piece in ("**", "*", "?"):
        return {"**": ".*", "*": "[^/]*", "?": "[^/]"}[piece]
    if len(piece) == 1:
        return re.escape(piece)
    inside = piece[1:-1].removeprefix("!").replace("\\", r"\\")
    return f"[{'^' if piece[1] == '!' else ''}{inside}]"
