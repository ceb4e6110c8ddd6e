"""The commands by which a followed child starts, and which Python commands are not followed."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

_OURS = str(Path(__file__).parents[2])
_BEGIN = """
import sys
path = list(sys.path)
sys.path.append({ours!r})
try:
    from tensafe.worker import begin
    begin({folder!r}, {token!r}, {settings!r}, {rank!r})
except Exception:
    pass
finally:
    sys.path[:] = path
"""
_MAIN = "import sys; sys.path.append({ours!r}); from tensafe.worker import main; main()"


def spawned_start(folder: str, token: str, settings: str, rank: int | None) -> str:
    """What a spawned child runs first; if tensafe cannot start there, the child goes on."""
    return _BEGIN.format(ours=_OURS, folder=folder, token=token, settings=settings, rank=rank)


def in_child_command(args: Sequence[str], folder: str, token: str, settings: str) -> tuple[str, ...] | None:
    """`python -u script.py ...` as a command that runs it under the engine; None for anything else."""
    words = list(map(str, args))
    python = next((place for place, word in enumerate(words) if _is_python(word)), None)
    if python is None:
        return None
    start = python + 1
    while start < len(words) and words[start] == "-u":
        start += 1
    program = words[start:]
    if len(program) < 1 + (program[:1] == ["-m"]) or (program[0].startswith("-") and program[0] != "-m"):
        return None
    return (*words[:start], "-c", _MAIN.format(ours=_OURS), folder, token, settings, *program)


def is_unfollowed_python(args: object, frame: FrameType | None) -> bool:
    """Whether the program itself, and not torch, starts another Python."""
    first = args[0] if isinstance(args, list | tuple) and args else args
    if not isinstance(first, str | os.PathLike) or not _is_python(os.fspath(first)):
        return False
    stdlib = sysconfig.get_path("stdlib")
    while frame is not None and _is_library(frame.f_code.co_filename, stdlib):
        frame = frame.f_back
    torch = getattr(sys.modules.get("torch"), "__path__", ["torch"])[0]
    return frame is not None and not frame.f_code.co_filename.startswith(torch)


def _is_library(filename: str, stdlib: str) -> bool:
    return filename.startswith((stdlib, "<frozen")) and "-packages" not in filename


def _is_python(word: str) -> bool:
    word = word.split(" ")[0]
    return word == sys.executable or os.path.basename(word).startswith("python")
