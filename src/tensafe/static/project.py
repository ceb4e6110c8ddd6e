"""The other files of the project that a file imports from, read only when a call needs them."""

from __future__ import annotations

import functools
import tokenize
from pathlib import Path

from tensafe.static.source import Source
from tensafe.static.values import Scope

MOST_FILES = 8
LARGEST_BYTES = 120_000


def read(path: Path) -> str:
    """The text of a Python file, in the encoding that it declares (PEP 263)."""
    with tokenize.open(path) as file:
        return file.read()


class Project:
    """Finds and keeps the files that one file imports from."""

    def __init__(self, path: str) -> None:
        self.folder = Path(path).parent
        self.sources: dict[Path, Source | None] = {}
        self.scopes: dict[str, Scope] = {}  # by path of the source
        self.consulted: set[str] = set()  # files that were read, or whose absence was noticed
        self._known: dict[tuple[str, int, str], Source | None] = {}

    def source_of(self, module: str, level: int, importer: Source) -> Source | None:
        """The parsed file of a module, or None when it is not in the project, too large, or one too many."""
        question = (module, level, importer.path)
        if question not in self._known:
            self._known[question] = self._find(module, level, importer)
        return self._known[question]

    def _find(self, module: str, level: int, importer: Source) -> Source | None:
        for candidate in self._candidates(module, level, Path(importer.path)):
            if candidate in self.sources:
                return self.sources[candidate]
            if len(self.sources) >= MOST_FILES:
                return None
            self.consulted.add(str(candidate))
            if candidate.is_file():
                self.sources[candidate] = _source(candidate)
                return self.sources[candidate]
        return None

    def _candidates(self, module: str, level: int, importer: Path) -> list[Path]:
        parts = [part for part in module.split(".") if part]
        if level:
            folders = [importer.parents[level - 1]] if level <= len(importer.parents) else []
        else:
            folders = [importer.parent]
            top = importer.parent
            while (top / "__init__.py").is_file() and top.parent != top:
                top = top.parent
            self.consulted.add(str(top / "__init__.py"))
            folders.append(top)
        found = []
        for folder in folders:
            found += [folder.joinpath(*parts).with_suffix(".py")] if parts else []
            found.append(folder.joinpath(*parts, "__init__.py"))
        return found


@functools.lru_cache(maxsize=64)
def _parse(path: Path, changed_ns: int) -> Source | None:
    try:
        return Source(str(path), read(path))
    except (OSError, SyntaxError, ValueError, UnicodeError, RecursionError):
        return None


def _source(path: Path) -> Source | None:
    """The file at this path, parsed once for all files that import it."""
    try:
        status = path.stat()
    except OSError:
        return None
    return _parse(path, status.st_mtime_ns) if status.st_size <= LARGEST_BYTES else None
