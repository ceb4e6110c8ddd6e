"""A source file or a notebook as one text to be fixed, and the way back to its bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tensafe.checking.cell_sites import in_program
from tensafe.findings import Finding
from tensafe.findings.cells import cell_path
from tensafe.findings.source import decode
from tensafe.notebooks import Program, is_notebook, read


class Document:
    """The text to work on: the file's own, or the cells of a notebook joined."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        text, self._encoding = decode(data)
        self._program = Program(read(text)) if is_notebook(path) else None
        self.text = self._program.text if self._program else text

    def own(self, finding: Finding) -> Finding:
        """The finding with the lines of this text."""
        return in_program(finding, self._program, self.path) if self._program else finding

    def encoded(self, text: str) -> bytes:
        """The bytes of the file after an edit of the text."""
        if self._program is not None:
            text = self._program.notebook.rewritten(self._program.cells_of(text))
        return text.encode(self._encoding)

    def differences(self, text: str) -> Iterator[tuple[str, str, str]]:
        """The name, the old and the new text of each part that an edit can change: the file, or its cells."""
        if self._program is None:
            yield self.path, self.text, text
            return
        after = self._program.cells_of(text)
        for cell in self._program.notebook.cells:
            yield cell_path(self.path, cell.number), cell.text, after[cell.number]


def opened(path: str | os.PathLike[str]) -> Document | None:
    """The document of a file; None when it cannot be read any more."""
    try:
        return Document(os.fspath(path), Path(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
