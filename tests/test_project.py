"""What holds for every file of the project: its size, its first sentence, and what it must not mention."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LONGEST_FILE = 400
LONGEST_FUNCTION = 60

# Taken apart, so that this file passes its own test.
MACHINE_PATHS = ["/wor" + "k/", "/ro" + "ot/", "/ho" + "me/", "/Us" + "ers/", "/op" + "t/", "/tm" + "p/w/"]
REGISTRY_HOSTS = ["py" + "pi.org", "python" + "hosted.org", "download." + "pytorch.org", "npm" + "js."]
UNMENTIONABLE = re.compile("|".join(re.escape(part) for part in [*MACHINE_PATHS, *REGISTRY_HOSTS]))


def committed() -> list[Path]:
    """Files that git keeps, or would: those it does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def python_files() -> list[Path]:
    return [path for path in committed() if path.suffix == ".py"]


def docstring_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many lines of a function are its docstring."""
    if ast.get_docstring(function) is None:
        return 0
    docstring = function.body[0]
    return (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1


def long_functions(text: str) -> Iterator[tuple[int, str, int]]:
    """Functions over the limit, as (line, name, lines without docstring)."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            length = node.end_lineno - node.lineno + 1 - docstring_lines(node)
            if length > LONGEST_FUNCTION:
                yield node.lineno, node.name, length


def mentions(text: str) -> Iterator[tuple[int, str]]:
    """Places in a text that name a machine's path or a registry's host, as (line, the words)."""
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, found.group()) for found in UNMENTIONABLE.finditer(line))


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_file_is_too_long() -> None:
    lengths = {shown(path): len(path.read_text().splitlines()) for path in python_files()}
    wrong = [f"{name}: {length} lines" for name, length in lengths.items() if length > LONGEST_FILE]
    assert not wrong, "\n".join(wrong)


def test_no_function_is_too_long() -> None:
    wrong = [
        f"{shown(path)}:{line}: {name} has {length} lines"
        for path in python_files()
        for line, name, length in long_functions(path.read_text())
    ]
    assert not wrong, "\n".join(wrong)


def test_every_module_says_what_it_is() -> None:
    wrong = [shown(path) for path in python_files() if not ast.get_docstring(ast.parse(path.read_text()))]
    assert not wrong, "no docstring: " + ", ".join(wrong)


def test_no_file_mentions_this_machine_or_a_registry() -> None:
    wrong = []
    for path in committed():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        wrong += [f"{shown(path)}:{line}: {words}" for line, words in mentions(text)]
    assert not wrong, "\n".join(wrong)


def test_a_long_function_is_seen_and_its_docstring_not_counted() -> None:
    body = "".join(f"    x{i} = {i}\n" for i in range(LONGEST_FUNCTION - 1))
    assert not list(long_functions(f"def f():\n{body}"))
    assert not list(long_functions(f'def f():\n    """One.\n\n    Two.\n    """\n{body}'))
    assert [name for _, name, _ in long_functions(f"def f():\n{body}    return 1\n")] == ["f"]


@pytest.mark.parametrize("part", [*MACHINE_PATHS, *REGISTRY_HOSTS])
def test_a_mention_is_seen(part: str) -> None:
    assert list(mentions(f"one\nsee {part}x")) == [(2, part)]


def test_the_version_stands_in_one_place() -> None:
    stated = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert stated is not None
    code = "import tensafe; print(tensafe.__version__)"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == stated.group(1)
    assert f"## {stated.group(1)}" in (ROOT / "CHANGELOG.md").read_text()
