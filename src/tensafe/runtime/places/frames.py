"""Which line of the user's program runs: the innermost frame outside torch, tensafe and the library."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

from tensafe.facts import Site

INTERNAL_PACKAGES = ("torch", "torchgen", "functorch", "numpy", "tensafe", "typing_extensions.py")
"""Installed packages whose lines are never the user's; the last wraps functions that are deprecated."""

Place = tuple[CodeType, int]
"""A code object and the offset of its running instruction: all that the hot path keeps of a line."""

_TENSAFE = str(Path(__file__).parents[2])
_STDLIB = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})


class _InternalFiles(dict[str, bool]):
    """File name to "not the user's", computed once for each file; `on_user_file` hears of each new one."""

    on_user_file: Callable[[str], None] | None = None

    def __missing__(self, filename: str) -> bool:
        internal = self[filename] = _is_internal(filename)
        if not internal and self.on_user_file is not None:
            self.on_user_file(filename)
        return internal


def _is_internal(filename: str) -> bool:
    if filename.startswith("<"):
        return not filename.startswith(("<ipython", "<stdin", "<string"))
    if "-packages" in filename:
        package = filename.partition("-packages")[2].strip("\\/").replace("\\", "/").partition("/")[0]
        return package in INTERNAL_PACKAGES
    return filename.startswith((_TENSAFE, *_STDLIB)) or _in_torch(filename)


def _in_torch(filename: str) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and filename.startswith(tuple(torch.__path__))


INTERNAL = _InternalFiles()


def user_frame(depth: int = 2) -> FrameType | None:
    """The innermost frame of the user's program, from `depth` frames up; None when there is none."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and INTERNAL[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def user_place(depth: int = 3) -> Place | None:
    """Where the user's program stands, as the hot path keeps it."""
    frame = user_frame(depth)
    return (frame.f_code, frame.f_lasti) if frame is not None else None


def user_places(depth: int = 3, most: int = 8) -> tuple[Place, ...]:
    """The user's frames from the innermost outwards, at most `most`."""
    places: list[Place] = []
    frame = user_frame(depth)
    while frame is not None and len(places) < most:
        if not INTERNAL[frame.f_code.co_filename]:
            places.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(places)


@lru_cache(maxsize=4096)
def _site(filename: str, qualname: str, span: tuple[int, int, int, int]) -> Site:
    line, end_line, column, end_column = span
    return Site(filename, line, column, end_line, end_column, "" if qualname == "<module>" else qualname)


def site_of(place: Place | None) -> Site | None:
    """The span of the expression at a place; on Python 3.10 the line without its columns."""
    if place is None:
        return None
    code, offset = place
    line, end_line, column, end_column = _positions(code, offset)
    if line is None:
        return None
    text = _line(code.co_filename, line)
    first = _characters(text, column) + 1 if column is not None else len(text) - len(text.lstrip()) + 1
    if end_column is None or end_line is None:
        end_line, last = line, len(text.rstrip()) + 1
    else:
        last = _characters(_line(code.co_filename, end_line), end_column) + 1
    name = getattr(code, "co_qualname", code.co_name)
    return _site(code.co_filename, name.replace(".<locals>", ""), (line, end_line, first, last))


def _positions(code: CodeType, offset: int) -> tuple[int | None, int | None, int | None, int | None]:
    if hasattr(code, "co_positions"):  # Python 3.11 and newer
        positions = list(code.co_positions())
        if 0 <= offset // 2 < len(positions):  # code may come without its table of lines
            return positions[offset // 2]
        return code.co_firstlineno, None, None, None
    for start, end, line in code.co_lines():
        if start <= offset < end:
            return line, None, None, None
    return code.co_firstlineno, None, None, None


def _line(filename: str, number: int) -> str:
    import linecache

    return linecache.getline(filename, number).rstrip("\n")


def _characters(text: str, nbytes: int) -> int:
    """A byte offset into a UTF-8 line, in characters."""
    return nbytes if text.isascii() else len(text.encode()[:nbytes].decode(errors="ignore"))
