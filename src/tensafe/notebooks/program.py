"""The code cells of a notebook as one program, and the way back from its lines to cells and their lines."""

from __future__ import annotations

import ast
import bisect
from dataclasses import dataclass

from tensafe.findings.source import split_lines
from tensafe.notebooks.magics import foreign, magic_lines
from tensafe.notebooks.reading import Cell, Notebook


@dataclass(frozen=True, slots=True)
class Broken:
    """A cell that could not be read as Python, and why."""

    number: int
    why: str


class Program:
    """One text in which each cell begins after a line of our own, and magics do nothing."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        self.broken: list[Broken] = []
        self._mark = _unused("# tensafe: cell", "".join(cell.text for cell in notebook.cells))
        self._magics: list[str] = []
        self._left_out: set[int] = set()
        self._starts: list[int] = []  # the line of each cell's mark
        self._numbers: list[int] = []
        lines: list[str] = []
        for cell in notebook.cells:
            self._starts.append(len(lines) + 1)
            self._numbers.append(cell.number)
            lines.append(f"{self._mark} {cell.number}\n")
            lines += split_lines(self._python(cell) + "\n")
        self.text = "".join(lines)

    def place(self, line: int) -> tuple[int, int]:
        """The cell in which a line of the program stands, and its line there."""
        number = bisect.bisect_right(self._starts, line) - 1
        if number < 0:
            return self._numbers[0] if self._numbers else 1, 1
        return self._numbers[number], max(1, line - self._starts[number])

    def line(self, cell: int, line: int) -> int:
        """The line of the program on which a line of a cell stands."""
        return self._starts[self._numbers.index(cell)] + line

    def cells_of(self, text: str) -> dict[int, str]:
        """The texts of the cells in a program that was edited."""
        texts: dict[int, str] = {}
        number = 0
        for line in split_lines(text):  # the first is a mark
            if line.startswith(f"{self._mark} "):
                number = int(line[len(self._mark) :])
                texts[number] = ""
            else:
                texts[number] += self._restored(line)
        return {
            number: self._original(number) if number in self._left_out else one.removesuffix("\n")
            for number, one in texts.items()
        }

    def _python(self, cell: Cell) -> str:
        """The cell as Python; nothing for one that is none."""
        if foreign(cell.text):
            return self._without(cell)
        try:
            ast.parse(cell.text)
            return cell.text
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            masked = self._masked(cell.text)
        try:
            ast.parse(masked)
        except (SyntaxError, ValueError) as error:
            where = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            self.broken.append(Broken(cell.number, f"not Python{where}: {getattr(error, 'msg', error)}"))
            return self._without(cell)
        return masked

    def _without(self, cell: Cell) -> str:
        self._left_out.add(cell.number)
        return "\n" * cell.text.count("\n")

    def _masked(self, cell: str) -> str:
        lines = split_lines(cell)
        for number, indent in magic_lines(cell):
            line = lines[number - 1]
            end = line[len(line.rstrip("\r\n")) :]
            name, equals, _ = line.partition("=")
            kept = f"{name}= None" if equals and _is_assigned(name) else f"{indent}pass" if indent else ""
            lines[number - 1] = f"{kept}  {self._mark} magic {len(self._magics)}{end}"
            self._magics.append(line)
        return "".join(lines)

    def _restored(self, line: str) -> str:
        _, mark, number = line.partition(f"  {self._mark} magic ")
        return self._magics[int(number)] if mark else line

    def _original(self, number: int) -> str:
        return next(cell.text for cell in self.notebook.cells if cell.number == number)


def _is_assigned(name: str) -> bool:
    """Whether the left side of `files = !ls` is a name or several."""
    return all(part.strip().isidentifier() for part in name.split(","))


def _unused(mark: str, text: str) -> str:
    while mark in text:
        mark += "-"
    return mark
