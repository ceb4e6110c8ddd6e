"""The caller's variables, read without leaving anything behind in its frames."""

from __future__ import annotations

import inspect
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

_OURS = str(Path(__file__).parent.parent)
_STDLIB = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_LIBRARIES = frozenset(["torch", "torchgen", "functorch", "numpy", "tensafe", "IPython", "ipykernel"])
_NOTEBOOK = frozenset(["_", "__", "___", "In", "Out", "_oh", "_ih"])
MOST_FRAMES = 64


def caller(depth: int = 2) -> FrameType | None:
    """The innermost frame that is neither ours nor a library's."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def is_users(filename: str) -> bool:
    """Whether a file is the program's, and not torch's, NumPy's, Python's or ours."""
    if filename.startswith("<"):
        return filename.startswith(("<ipython", "<stdin", "<string", "<doctest", "<console"))
    if "-packages" in filename:
        package = filename.partition("-packages")[2].strip("\\/").replace("\\", "/").partition("/")[0]
        return package.removesuffix(".py") not in _LIBRARIES
    return not filename.startswith((_OURS, *_STDLIB)) and not _in_torch(filename)


def _in_torch(filename: str) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and filename.startswith(tuple(torch.__path__))


def variables_of(frame: FrameType) -> dict[str, Any]:
    """The local variables of one frame: a copy, which the caller drops.

    Before Python 3.13 `f_locals` of a function fills a dictionary that the frame keeps, and that keeps every
    value alive that the function later drops; it is emptied again, unless the program itself holds it.
    """
    held = frame.f_locals
    variables = dict(held)
    if _is_snapshot(frame) and sys.getrefcount(held) <= _OWN_REFERENCES:
        held.clear()
    return variables


_OWN_REFERENCES = 3  # the frame's, the local name's, the argument's


def _is_snapshot(frame: FrameType) -> bool:
    return sys.version_info < (3, 13) and bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)


def roots_of(frame: FrameType | None) -> list[tuple[str, object]]:
    """All variables that a frame and its callers see; of equal names the outer ones say their function."""
    taken: dict[str, object] = {}
    roots: list[tuple[str, object]] = []
    for function, variables in _scopes(frame):
        for name, value in variables.items():
            if name not in taken:
                taken[name] = value
                roots.append((name, value))
            elif taken[name] is not value:
                roots.append((f"{function}: {name}", value))
    return roots


def _scopes(frame: FrameType | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The variables of this frame and of those that called it, innermost first, then their globals.

    Callers in installed packages (a trainer, a test runner) are passed over.
    """
    innermost = frame
    seen: dict[int, dict[str, Any]] = {}
    count = 0
    while frame is not None and count < MOST_FRAMES:
        filename = frame.f_code.co_filename
        if frame is innermost or ("-packages" not in filename and is_users(filename)):
            seen.setdefault(id(frame.f_globals), frame.f_globals)
            if not _is_module(frame):
                yield frame.f_code.co_name, _shown(variables_of(frame))
            count += 1
        frame = frame.f_back
    for names in seen.values():
        yield str(names.get("__name__", "globals")), _shown(dict(names))


def _shown(variables: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in variables.items() if not _is_hidden(name)}


def _is_module(frame: FrameType) -> bool:
    return frame.f_code.co_name == "<module>"


def _is_hidden(name: str) -> bool:
    """Names that nobody wrote: Python's own, a test runner's, those of what IPython printed."""
    return not name.isidentifier() or (name.startswith("__") and name.endswith("__")) or name in _NOTEBOOK


def names_of(values: Sequence[object], frame: FrameType | None) -> list[str]:
    """How the caller calls these objects: its variables' names by identity, else `arg0`, `arg1`, …"""
    names: dict[int, str] = {}
    if frame is not None:
        for scope in (variables_of(frame), frame.f_globals):
            for name, value in list(scope.items()):
                if not _is_hidden(name):
                    names.setdefault(id(value), name)
    return [names.get(id(value), f"arg{place}") for place, value in enumerate(values)]
