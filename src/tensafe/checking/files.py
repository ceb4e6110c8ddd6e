"""Which files are checked: what the paths name, without environments and what a project excludes."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from tensafe.errors import TensafeError

SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "__pycache__", "node_modules", "build", "dist"}
    | {".mypy_cache", ".ruff_cache", ".pytest_cache", ".eggs", ".ipynb_checkpoints"}
)
SUFFIXES = (".py", ".ipynb")

Excludes = Callable[[str], bool]


def nothing(path: str) -> bool:
    """Leaves nothing out."""
    return False


def python_files(paths: Sequence[Path], excludes: Excludes = nothing, force: bool = False) -> list[Path]:
    """The files to check, absolute, each once; raises TensafeError for a path that gives none.

    A file that is named is checked even where the project excludes it; `force` excludes it all the same.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if os.path.isdir(path):
            inside = list(_walk(path, excludes))
            if not inside and not (force and excludes(os.path.abspath(path))):
                raise TensafeError(f"no Python files in {path}")
            found.update(dict.fromkeys(inside))
        elif not os.path.exists(path):
            raise TensafeError(f"no such file or folder: {path}")
        elif not (force and excludes(os.path.abspath(path))):
            found[Path(os.path.abspath(path))] = None
    return list(found)


def _walk(folder: Path, excludes: Excludes) -> Iterator[Path]:
    for root, folders, names in os.walk(os.path.abspath(folder)):
        folders[:] = sorted(
            name
            for name in folders
            if name not in SKIPPED
            and not name.endswith(".egg-info")
            and not excludes(os.path.join(root, name))
        )
        for name in sorted(names):
            path = os.path.join(root, name)
            if name.endswith(SUFFIXES) and os.path.isfile(path) and not excludes(path):
                yield Path(path)


def digest(data: bytes) -> str:
    """What stands for the bytes of a file."""
    return blake2b(data, digest_size=20).hexdigest()


def digest_of(path: str) -> str:
    """The digest of a file; empty when there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return _digest_of(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=8192)
def _digest_of(path: str, changed_ns: int, nbytes: int) -> str:
    try:
        with open(path, "rb") as file:
            return digest(file.read())
    except OSError:
        return ""
