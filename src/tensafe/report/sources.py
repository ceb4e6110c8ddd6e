"""The lines of source files, read when first asked for; a file that changed since is not shown."""

from __future__ import annotations

import os

from tensafe.findings import Site
from tensafe.findings.source import decode, split_lines


class Sources:
    """Reads each file once; a file changed after `not_after` is no longer the one that ran."""

    def __init__(self, not_after: float | None = None) -> None:
        self._not_after = not_after
        self._files: dict[str, list[str] | str] = {}

    def lines(self, path: str) -> list[str] | str:
        """The lines without their ends, or why they cannot be shown."""
        if path not in self._files:
            self._files[path] = self._read(path)
        return self._files[path]

    def fits(self, site: Site) -> bool:
        """Whether the file has such a place at all."""
        lines = self.lines(site.path)
        last = max(site.line, site.end_line)
        if isinstance(lines, str) or not 1 <= site.line <= last <= len(lines):
            return False
        return site.column <= len(lines[site.line - 1]) + 1 and site.end_column <= len(lines[last - 1]) + 1

    def _read(self, path: str) -> list[str] | str:
        try:
            with open(path, "rb") as file:
                if self._not_after is not None and os.fstat(file.fileno()).st_mtime > self._not_after:
                    return "the file changed since"
                text, _ = decode(file.read())
        except (OSError, ValueError):
            return "the file cannot be read"
        return [line.rstrip("\r\n") for line in split_lines(text)]
