"""A file that is written beside its place and renamed when it is whole and checked."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tensafe.checkpoints.error import CheckpointError


@contextlib.contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """The name to write to; it takes the place of `path` at the end, and is removed on any failure."""
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        raise CheckpointError(f"cannot write {path}: it is no regular file")
    name = place.parent / f".{place.stem[:40]}.{os.getpid()}.tmp{place.suffix[:12]}"
    try:
        with open(name, "xb"):
            pass
        yield name
        with contextlib.suppress(FileNotFoundError):
            os.chmod(name, stat.S_IMODE(os.stat(place).st_mode))
        os.replace(name, place)
    except OSError as error:
        raise CheckpointError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)
