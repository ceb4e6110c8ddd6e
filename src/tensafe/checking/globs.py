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


def refuse_unreadable(pattern: str) -> None:
    """Raise ValueError for a pattern that means nothing, such as `[z-a]`."""
    try:
        _compiled(pattern)
    except re.error as error:
        raise ValueError(f"has the pattern {pattern!r}: {error.msg}") from None


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
    negated = piece[1] == "!"
    inside = re.sub(r"([\\\[&~|])", r"\\\1", piece[1 + negated : -1])
    return f"[{'^' * negated}{inside}]" if inside else re.escape(piece)
