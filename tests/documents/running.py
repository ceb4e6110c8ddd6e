"""Blocks of a page, run as by a reader: in a folder with examples/ and the files that the page shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from documents.pages import ROOT, Command, Page

MARK = "\x1e"
PYTHON = shlex.quote(sys.executable)
AROUND = Path(__file__).parent / "around"
"""What a page takes for granted (`model`, `train`), one file for each page that does."""


def prepared(folder: Path, files: tuple[tuple[str, str], ...]) -> Path:
    """A folder with the examples and these files."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name, text in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def printed(command: Command, folder: Path) -> str:
    """What a line of a console prints on standard output."""
    line = re.sub(r"(?<![\w./-])tensafe (?=[a-z-])", f"{PYTHON} -m tensafe ", command.line)
    line = re.sub(r"^python ", f"{PYTHON} ", line)
    line = re.sub(r"^pytest ", f"{PYTHON} -m pytest -p tensafe.pytest_plugin ", line)
    done = subprocess.run(
        line, shell=True, cwd=folder, env=surroundings(), capture_output=True, text=True, timeout=300
    )
    return done.stdout.rstrip("\n")


def surroundings() -> dict[str, str]:
    """The environment of a reader's console, and not of the pytest that is running."""
    without = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTEST") and name not in ("CI", "BUILD_NUMBER")  # pytest tells more there
    }
    return {**without, "NO_COLOR": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def program(page: Page) -> str:
    """The Python blocks of a page as one program, each line of it at its line of the page."""
    around = AROUND / f"{Path(page.name).name.partition('.')[0].lower()}.py"
    lines: list[str] = []
    if around.exists():
        lines.append(f"exec(compile(open({str(around)!r}).read(), {str(around)!r}, 'exec'))")
    for block, _ in page.programs():
        lines += [""] * (block.line - 2 - len(lines))
        lines += [f"print({MARK!r})", *block.text.splitlines()]
    return "\n".join(lines) + "\n"


def printed_by(page: Page, folder: Path) -> list[str]:
    """What each Python block of a page prints; raises AssertionError with the traceback where one fails."""
    path = prepared(folder, page.files) / "page.py"
    path.write_text(program(page), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, path.name],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env=surroundings(),
    )
    assert done.returncode == 0, f"{page.name}:\n{done.stderr}"
    return [part.lstrip("\n").rstrip() for part in done.stdout.split(MARK)[1:]]


SHELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor", colors_force=True)
for cell in {cells!r}:
    print({mark!r})
    shell.run_cell(cell).raise_error()
"""


def printed_in_ipython(page: Page, folder: Path) -> list[str]:
    """What each cell of a page prints."""
    cells = [block.text for block, _ in page.programs("ipython")]
    code = SHELL.format(cells=cells, mark=MARK)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**surroundings(), "IPYTHONDIR": str(folder)},
    )
    assert done.returncode == 0, f"{page.name}:\n{done.stdout}{done.stderr}"
    return [part.lstrip("\n").rstrip() for part in done.stdout.split(MARK)[1:]]
