"""Writes a file beside its place and renames it: whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from tensafe.errors import TensafeError


def refuse_unwritable(path: Path) -> None:
    """Raise `TensafeError` when `write_whole` could not write here; leaves nothing behind."""
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(None, "it is write-protected")
        if not _is_special(path):
            handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=_folder(path))
            os.close(handle)
            os.unlink(name)
    except (OSError, ValueError) as error:
        raise TensafeError(f"cannot write {path}: {_reason(error)}") from None


def write_whole(path: Path, data: bytes) -> None:
    """Replace the file, keeping its mode; raises `TensafeError` and leaves the old one on failure."""
    try:
        if _is_special(path):
            path.write_bytes(data)
        else:
            _write_beside(Path(os.path.realpath(path)), data)
    except (OSError, ValueError) as error:
        raise TensafeError(f"cannot write {path}: {_reason(error)}") from None


def _write_beside(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.chmod(name, _mode(path))
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _is_special(path: Path) -> bool:
    """A device or a pipe, which a rename would replace."""
    return path.exists() and not path.is_file()


def _folder(path: Path) -> str:
    return os.path.dirname(os.path.realpath(path))


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
