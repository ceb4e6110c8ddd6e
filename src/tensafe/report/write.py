"""Writes a file beside its place and renames it: whole, or not at all."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from tensafe.errors import TensafeError

SETTINGS = "pyproject.toml"
SOURCES = (".py", ".pyi", ".pyw", ".ipynb")

_numbers = itertools.count(1)


def refuse_unwritable(path: Path) -> None:
    """Raise `TensafeError` when `write_whole` could or should not write here; leaves nothing behind.

    What we write is never Python nor settings: a file of such a name is the user's work, given by mistake.
    """
    try:
        for name in (path.name, os.path.basename(os.path.realpath(path))):
            if path.is_file() and (name == SETTINGS or name.endswith(SOURCES)):
                kind = "a project's settings" if name == SETTINGS else "source code"
                raise FileExistsError(None, f"it is there, and holds {kind}")
        if path.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(None, "it is write-protected")
        if not is_special(path):
            name = _beside(os.path.realpath(path))
            with open(name, "xb"):
                pass
            os.unlink(name)
    except (OSError, ValueError) as error:
        raise TensafeError(f"cannot write {path}: {_reason(error)}") from None


def refuse_same(path: Path, other: Path, what: str) -> None:
    """Raise `TensafeError` when two files to write are one."""
    if os.path.realpath(path) == os.path.realpath(other):
        raise TensafeError(f"cannot write {path}: {what} goes there")


def refuse_overwriting(path: Path, inputs: Iterable[Path], what: str) -> None:
    """Raise `TensafeError` when the file to write is one of the files to read, by whatever name."""
    try:
        own = os.stat(path)
    except (OSError, ValueError):
        return
    for item in inputs:
        with contextlib.suppress(OSError, ValueError):
            if os.path.samestat(own, os.stat(item)):
                raise TensafeError(f"cannot write {path}: it is {what}")


def write_whole(path: Path, data: bytes) -> None:
    """Replace the file, keeping its mode; raises `TensafeError` and leaves the old one on failure."""
    try:
        if is_special(path):
            path.write_bytes(data)
        else:
            _replace(os.path.realpath(path), data)
    except (OSError, ValueError) as error:
        raise TensafeError(f"cannot write {path}: {_reason(error)}") from None


def _replace(path: str, data: bytes) -> None:
    name = _beside(path)
    try:
        with open(name, "xb") as file:
            file.write(data)
        with contextlib.suppress(FileNotFoundError):
            os.chmod(name, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError, ValueError):
            os.unlink(name)
        raise


def _beside(path: str) -> str:
    """A name in the same folder that no other write uses."""
    folder, name = os.path.split(path)
    if len(os.fsencode(name)) > 255:  # the name beside it is cut to a length that always works
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    return os.path.join(folder, f".{name[:40]}.{os.getpid()}.{next(_numbers)}.tmp")


def is_special(path: Path) -> bool:
    """A device or a pipe, which a rename would replace."""
    return path.exists() and not path.is_file()


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
