"""What an outcome depends on besides the files: this tensafe to the last byte, the rules, and Python."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from tensafe import __version__

PACKAGE = Path(__file__).parent.parent
ROOMS = ("checking", "facts", "findings", "memory", "notebooks", "ops", "rules", "static", "syntax")
_MARGIN_SECONDS = 1.0


def stamp(codes: Sequence[str]) -> str:
    """Names the engine and the rules; empty while the engine's own files are being edited."""
    engine = engine_digest()
    return f"{__version__} {sys.version_info[:2]} {engine} {','.join(codes)}" if engine else ""


@functools.cache
def engine_digest() -> str:
    """Of the source that is running; empty when it changed after this process began."""
    began = time.time() - time.process_time() - _MARGIN_SECONDS
    whole = blake2b(digest_size=20)
    for path in _engine_files():
        if os.stat(path).st_mtime > began:
            return ""
        whole.update(f"{path}\0".encode())
        with open(path, "rb") as file:
            whole.update(file.read())
    return whole.hexdigest()


def _engine_files() -> Iterator[str]:
    yield str(PACKAGE / "check.py")
    for room in ROOMS:
        for folder, folders, names in os.walk(PACKAGE / room):
            folders[:] = sorted(name for name in folders if name not in ("__pycache__", "from_torch"))
            yield from (
                os.path.join(folder, name) for name in sorted(names) if name.endswith((".py", ".json"))
            )
