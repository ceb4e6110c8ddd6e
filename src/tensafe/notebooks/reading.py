"""A notebook file read, its code cells found, and changed cells put back with every other byte as it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tensafe.notebooks.json_spans import Spot, spots


class NotebookError(ValueError):
    """The file is no notebook that can be checked; the message says why."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its number among all cells, its text, and where its source stands in the file."""

    number: int
    text: str
    source: Spot


@dataclass(frozen=True, slots=True)
class Notebook:
    """The text of the file and its code cells."""

    text: str
    cells: tuple[Cell, ...]

    def rewritten(self, texts: Mapping[int, str]) -> str:
        """The text of the file with these cells changed."""
        parts = []
        position = 0
        for cell in self.cells:
            new = texts.get(cell.number, cell.text)
            if new != cell.text:
                parts += [self.text[position : cell.source.start], _rewritten(self.text, cell, new)]
                position = cell.source.end
        return "".join([*parts, self.text[position:]])

    def file_line(self, number: int, line: int) -> int:
        """The line of the file on which a line of a cell stands, or its source begins."""
        for cell in self.cells:
            if cell.number == number:
                items = cell.source.items
                place = items[line - 1].start if 0 < line <= len(items) else cell.source.start
                return self.text.count("\n", 0, place) + 1
        return 1


def is_notebook(path: Path | str) -> bool:
    """Whether the name is that of a notebook."""
    return str(path).endswith(".ipynb")


def read(text: str) -> Notebook:
    """Read a notebook; raises NotebookError on what is none, or is not written in Python."""
    try:
        data = json.loads(text, strict=False)
    except ValueError as error:
        raise NotebookError(f"not a notebook: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("cells"), list):
        old = isinstance(data, dict) and "worksheets" in data
        raise NotebookError(
            "a notebook of format 3: open and save it once" if old else "not a notebook: no cells"
        )
    language = _language(data.get("metadata"))
    if language not in ("python", "ipython"):
        raise NotebookError(f"a notebook in {language}")
    place = spots(text)
    cells = [
        Cell(number, _joined(cell["source"]), spot.members["source"])
        for number, (cell, spot) in enumerate(
            zip(data["cells"], place.members["cells"].items, strict=True), 1
        )
        if _is_code(cell)
    ]
    return Notebook(text, tuple(cells))


def _is_code(cell: object) -> bool:
    return isinstance(cell, dict) and cell.get("cell_type") == "code" and _is_text(cell.get("source"))


def _is_text(source: object) -> bool:
    return isinstance(source, str) or (
        isinstance(source, list) and all(isinstance(line, str) for line in source)
    )


def _joined(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def _language(metadata: object) -> str:
    """`python` where the notebook does not say."""
    known = metadata if isinstance(metadata, dict) else {}
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        inner = known.get(table)
        if isinstance(inner, dict) and isinstance(inner.get(key), str):
            return str(inner[key]).lower()
    return "python"


def _rewritten(text: str, cell: Cell, new: str) -> str:
    import difflib

    source = cell.source
    if source.text is not None:
        return _quoted(new, text[source.start : source.end])
    raw = [text[item.start : item.end] for item in source.items]
    old_lines = [item.text or "" for item in source.items]
    new_lines = new.splitlines(keepends=True)
    kept: list[str] = []
    for tag, i, j, m, n in difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_opcodes():
        example = "".join(raw)
        kept += raw[i:j] if tag == "equal" else [_quoted(line, example) for line in new_lines[m:n]]
    return _array(text, source, kept)


def _array(text: str, source: Spot, items: list[str]) -> str:
    """The items laid out as those that were there."""
    if not source.items:
        return f"[{', '.join(items)}]"
    first, last = source.items[0], source.items[-1]
    before, after = text[source.start : first.start], text[last.end : source.end]
    between = "," + (before[1:] or (" " if '": ' in text else ""))
    if len(source.items) > 1:
        between = text[first.end : source.items[1].start]
    return before + between.join(items) + after


def _quoted(line: str, example: str) -> str:
    """A JSON string, escaped as those around it are."""
    return json.dumps(line, ensure_ascii=example.isascii() and "\\u" in example)
