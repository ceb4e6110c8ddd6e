"""Outcomes of earlier checks, by content: one JSON file for each folder of sources, never a pickle."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
import time
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tensafe.checking import outcome as records
from tensafe.checking.files import digest_of
from tensafe.checking.outcome import Outcome

MOST_BYTES = 100_000_000
SECONDS_OF_A_DAY = 86_400

_numbers = itertools.count(1)
Shelf = dict[str, Any]


def cache_folder() -> Path | None:
    """Where the platform keeps caches; None where there is no such place."""
    chosen = os.environ.get("XDG_CACHE_HOME")
    if chosen and os.path.isabs(chosen):
        return Path(chosen, "tensafe", "check")
    with contextlib.suppress(RuntimeError):  # no home
        home = Path.home()
        if sys.platform == "darwin":
            return home / "Library" / "Caches" / "tensafe" / "check"
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or home, "tensafe", "cache", "check")
        return home / ".cache" / "tensafe" / "check"
    return None


class Cache:
    """Shelves of outcomes, one in hand at a time; one that is spoiled is as if it were not there."""

    def __init__(self, folder: Path, stamp: str) -> None:
        self._folder = folder
        self._stamp = stamp
        self._in_hand = ""  # the folder of sources whose shelf this is
        self._shelf: Shelf = {}
        self._is_new = False  # something was put on the shelf in hand
        self._wrote = False

    def find(self, file: Path) -> Outcome | None:
        """What an earlier check of the same bytes gave, if nothing that it read has changed."""
        entry = self._take(file.parent).get(file.name)
        try:
            if entry is None or not entry["digest"] or entry["digest"] != digest_of(str(file)):
                return None
            if any(digest_of(path) != digest for path, digest in entry["consulted"].items()):
                return None
            return records.from_json(entry)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            return None

    def keep(self, file: Path, outcome: Outcome) -> None:
        """Remember an outcome that the same bytes will give again."""
        if outcome.digest:
            self._take(file.parent)[file.name] = records.to_json(outcome)
            self._is_new = True

    def close(self) -> None:
        """Put the last shelf back, and drop the oldest ones where there are too many."""
        self._put_back()
        if self._wrote:
            with contextlib.suppress(OSError):
                _bound(self._folder)

    def _take(self, folder: Path) -> Shelf:
        """The shelf of a folder; files come folder by folder, so that memory stays flat."""
        name = str(folder)
        if name != self._in_hand:
            self._put_back()
            self._in_hand, self._shelf = name, self._read(name)
        return self._shelf

    def _put_back(self) -> None:
        if self._is_new:
            with contextlib.suppress(OSError):
                self._write(self._in_hand, self._shelf)
                self._wrote = True
        self._in_hand, self._shelf, self._is_new = "", {}, False

    def _read(self, folder: str) -> Shelf:
        path = self._path(folder)
        try:
            with open(path, "rb") as file:
                data = json.loads(file.read())
            if data["stamp"] != self._stamp or data["folder"] != folder:
                return {}
            if time.time() - os.stat(path).st_mtime > SECONDS_OF_A_DAY:
                os.utime(path)  # in use
            files = data["files"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return {}
        return files if isinstance(files, dict) else {}

    def _write(self, folder: str, shelf: Shelf) -> None:
        """Write it beside its place and rename it, so that who reads meanwhile has the old one or the new."""
        files = {name: entry for name, entry in shelf.items() if _is_there(folder, name)}
        whole = json.dumps({"stamp": self._stamp, "folder": folder, "files": files}).encode()
        path = self._path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}.{next(_numbers)}.tmp")
        try:
            beside.write_bytes(whole)
            os.replace(beside, path)
        finally:
            with contextlib.suppress(OSError):
                beside.unlink()

    def _path(self, folder: str) -> Path:
        named = f"{self._stamp}\0{folder}".encode("utf-8", "surrogatepass")
        return self._folder / f"{blake2b(named, digest_size=16).hexdigest()}.json"


def _is_there(folder: str, name: str) -> bool:
    return os.path.exists(os.path.join(folder, name))


def _bound(folder: Path) -> None:
    """Keep all shelves together under the limit: the least recently used go first."""
    known: list[tuple[float, int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                status = entry.stat()
                known.append((status.st_mtime, status.st_size, entry.path))
    excess = sum(size for _, size, _ in known) - MOST_BYTES
    for _, size, path in sorted(known):
        if excess <= 0:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        excess -= size


def opened(stamp: str) -> Cache | None:
    """The cache of this machine, if it can have one."""
    folder = cache_folder()
    return Cache(folder, stamp) if folder is not None and stamp else None
