"""The lines of source files and cells, read when first asked for; a file that changed is not shown."""

from __future__ import annotations

import linecache
import os

from tensafe.findings import Site
from tensafe.findings.cells import split_cell
from tensafe.findings.source import decode, split_lines
from tensafe.notebooks import Notebook, is_notebook, read


class Sources:
    """Reads each file once; a file changed after `not_after` is no longer the one that ran."""

    def __init__(self, not_after: float | None = None) -> None:
        self._not_after = not_after
        self._files: dict[str, list[str] | str] = {}
        self._given: dict[str, str] = {}
        self._notebooks: dict[str, Notebook | str] = {}

    def give(self, path: str, data: bytes) -> None:
        """Take this content for that of the file; raises ValueError when it is no Python source."""
        self._given[path] = decode(data)[0]

    def line(self, path: str, number: int) -> str:
        """One line, or nothing when it cannot be shown."""
        lines = self.lines(path)
        return "" if isinstance(lines, str) or not 0 < number <= len(lines) else lines[number - 1]

    def text(self, path: str) -> str | None:
        """The text of a source file with its line ends; None when it cannot be shown, or is a notebook."""
        if is_notebook(split_cell(path)[0]):
            return None
        text, why = self._text(path)
        return None if why else text

    def file_line(self, site: Site) -> int | None:
        """The line of the file on which a site begins; for a site in a cell, that of the notebook's JSON."""
        path, cell = split_cell(site.path)
        if cell is None:
            return site.line
        notebook = self._notebook(path)
        return None if isinstance(notebook, str) else notebook.file_line(cell, site.line)

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
        file, cell = split_cell(path)
        if cell is None:
            text, why = self._text(file)
        else:
            notebook = self._notebook(file)
            if isinstance(notebook, str):
                return notebook
            text = next((one.text for one in notebook.cells if one.number == cell), "")
            why = ""
        return why or [line.rstrip("\r\n") for line in split_lines(text)]

    def _notebook(self, path: str) -> Notebook | str:
        if path not in self._notebooks:
            text, why = self._text(path)
            try:
                self._notebooks[path] = why or read(text)
            except (ValueError, RecursionError):
                self._notebooks[path] = "the file cannot be read"
        return self._notebooks[path]

    def _text(self, path: str) -> tuple[str, str]:
        """The text of a file, or why it cannot be shown."""
        if path in self._given:
            return self._given[path], ""
        try:
            with open(path, "rb") as file:
                if self._not_after is not None and os.fstat(file.fileno()).st_mtime > self._not_after:
                    return "", "the file changed since"
                return decode(file.read())[0], ""
        except (OSError, ValueError):
            cell = _executed_cell(path)
            return (cell, "") if cell else ("", "the file cannot be read")


def _executed_cell(path: str) -> str:
    """The text of a cell that this process executed, as IPython keeps it; nothing for a file."""
    entry = linecache.cache.get(path, ())
    if len(entry) == 4 and entry[1] is None:  # what lies in a file has a time of its last change
        return "".join(entry[2])
    return ""
