"""How a path is shown: relative to the folder the user stands in when it lies below, else in full."""

from __future__ import annotations

import os


def shown_path(path: str, root: str) -> str:
    """`/a/project/train.py` seen from `/a/project` is `train.py`."""
    inside = _below(path, root)
    return path if inside is None else inside


def _below(path: str, root: str) -> str | None:
    try:
        relative = os.path.relpath(path, root)
    except ValueError:  # another drive
        return None
    return None if relative == os.pardir or relative.startswith(os.pardir + os.sep) else relative
