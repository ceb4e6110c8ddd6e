"""Who may import whom, as a table; a folder that is not in the table fails until it is placed."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "tensafe"
FRONT_DOOR = "__init__"

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "ops": set(),
    "memory": set(),
    # what plain `ast` says of names, for source that is read and for source that runs
    "syntax": {"ops"},
    "uncompiled": set(),  # what `torch.compile` shall not trace
    "facts": {"ops", "memory"},
    "findings": {"facts"},
    "rules": {"facts", "findings"},
    "static": {"ops", "memory", "facts", "syntax"},
    "runtime": {"ops", "memory", "facts", "syntax", "uncompiled"},
    "aliases": {"memory", "uncompiled"},
    "checkpoints": {"memory"},
    "copies": {"memory"},
    "fixes": {"findings"},
    "notebooks": {"findings"},
    # what surrounds the static engine: settings, files, the cache, the baseline, comments that allow
    "checking": {"facts", "findings", "notebooks", "rules"},
    "tour": {"memory"},
    "report": {"findings", "memory", "aliases", "notebooks", "ops", "tour"},
    "collector": {"facts", "findings", "rules"},
    # the engine of a process and who listens to it; it reads the source too, for writes by NumPy
    "listening": {"collector", "facts", "findings", "runtime", "static", "watched"},
    "family": {"collector", "findings", "listening", "rules", "runtime"},  # a run's processes
    # the two modules that bring rules and an engine together, and what a child process does of that
    "check": {"checking", "facts", "findings", "notebooks", "rules", "static"},
    "run": {"collector", "family", "findings", "listening", "rules", "runtime"},
    "worker": {"collector", "family", "runtime"},
    # what people hold in their hands after `explain` and `memory_map`: the model with its renderings
    "look": {"aliases", "memory", "report", "runtime", "uncompiled"},
    "snapshots": {"copies", "report"},  # and after `snapshot`
    "guards": {"collector", "findings", "listening", "report", "rules"},  # `watching`
    "watched": {"aliases", "report", "runtime"},  # `watch`: who writes here
    "magics": {"guards"},
    "integrations": {"copies", "findings", "guards", "report"},  # callbacks for others' trainers
    "pytest_plugin": {"collector", "findings", "guards", "report", "rules", "runtime"},
    "lsp": {"check", "checking", "facts", "findings", "fixes", "rules", "static"},
    "cli": {
        *("check", "run", "findings", "rules", "fixes", "report", "memory", "checkpoints", "ops", "copies"),
        *("checking", "lsp", "notebooks", "tour"),
    },
    "__main__": {"cli"},
}
for allowed in MAY_IMPORT.values():
    allowed.add("errors")
MAY_IMPORT[FRONT_DOOR] = set(MAY_IMPORT)  # public names, each loaded on first use
ANYBODYS = {"tensafe.__version__"}  # a string in the front door, which itself imports nothing when imported

# Rooms, or single modules, that touch tensors; whoever imports one of these modules touches them too.
TORCH_ROOMS = {"runtime", "aliases", "copies", "integrations", "tour", "uncompiled"}
TORCH_MODULES = {"memory.from_torch", "ops.from_torch"}
TORCHLESS_MODULES = {"aliases.model"}  # of a room of tensors, but read by the report


def room_of(module: str) -> str:
    """The room of a module named from inside tensafe: `facts.words` is in `facts`."""
    return module.split(".")[0] or FRONT_DOOR


def name_of(path: Path) -> str:
    """`src/tensafe/facts/__init__.py` is `facts`; the front door is the empty name."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == FRONT_DOOR else parts)


def absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The full name that `from ... import` reads from, relative or not."""
    if node.level == 0:
        return node.module or ""
    package = ["tensafe", *module.split(".")] if module else ["tensafe"]
    above = node.level - 1 if is_package else node.level
    return ".".join([*package[: len(package) - above], *([node.module] if node.module else [])])


def imports(text: str, module: str, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Every import in a file, those inside functions and under TYPE_CHECKING too, as (line, full name)."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = absolute(node, module, is_package)
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def room_imported(name: str) -> str | None:
    """The room that a full name lies in, None when it is not ours; a name of no room is the front door's."""
    head, _, inside = name.partition(".")
    if head != "tensafe":
        return None
    room = room_of(inside)
    return room if room in MAY_IMPORT else FRONT_DOOR


def is_torch(name: str) -> bool:
    """Whether an imported name brings torch: torch itself, or one of our modules that needs it."""
    if name.split(".")[0] == "torch":
        return True
    inside = name.removeprefix("tensafe.")
    return inside != name and any(inside == m or inside.startswith(f"{m}.") for m in TORCH_MODULES)


def may_touch(module: str) -> bool:
    """Whether a module may import torch."""
    if module in TORCHLESS_MODULES:
        return False
    inside = any(module == allowed or module.startswith(f"{allowed}.") for allowed in TORCH_MODULES)
    return room_of(module) in TORCH_ROOMS or inside


def broken(text: str, module: str, is_package: bool = False) -> list[str]:
    """What a file of this name does against the table, one line each."""
    room = room_of(module)
    if room not in MAY_IMPORT:
        return [f"{module}: `{room}` is not in the table: place it"]
    wrong = []
    for line, name in imports(text, module, is_package):
        other = room_imported(name)
        if name in ANYBODYS:
            continue
        if other is not None and other != room and other not in MAY_IMPORT[room]:
            wrong.append(f"{module or FRONT_DOOR}:{line}: {room} may not import {name}")
        if is_torch(name) and not may_touch(module):
            wrong.append(f"{module or FRONT_DOOR}:{line}: {room} may not import torch, as {name} does")
    return wrong


def test_every_import_follows_the_table() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert files, "no source found"
    wrong = []
    for path in files:
        wrong += broken(path.read_text(), name_of(path), is_package=path.stem == FRONT_DOOR)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("facts.words", "from tensafe.rules import catalogue"),
        ("facts.words", "from tensafe import rules"),
        ("facts.words", "import tensafe.rules.lost_write"),
        ("facts.words", "from ..rules import catalogue"),
        ("facts.words", "from .. import rules"),
        ("facts.words", "from tensafe import deepcopy"),
        ("cli.check", "from tensafe.static import machine"),
        ("cli.run", "import tensafe.runtime.engine"),
        ("check", "from tensafe.run import run_program"),
        ("check", "import tensafe.runtime"),
        ("static.flow", "def f():\n    from tensafe.rules import catalogue"),
        ("static.flow", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import tensafe.runtime"),
        ("static.flow", "import torch"),
        ("static.flow", "from torch.nn import Module"),
        ("static.flow", "from tensafe.memory.from_torch import extent_of"),
        ("static.flow", "from tensafe.memory import from_torch"),
        ("memory.extent", "import torch"),
        ("ops.table", "from tensafe.memory import Extent"),
        ("errors", "from tensafe.facts import Site"),
        ("surprise.new", "x = 1"),
        ("surprise", "x = 1"),
    ],
)
def test_a_line_that_breaks_the_table_is_seen(module: str, text: str) -> None:
    assert broken(text, module)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("facts.words", "from tensafe.memory import Extent"),
        ("facts.words", "from .history import History"),
        ("runtime.hooks", "import torch"),
        ("memory.from_torch", "import torch"),
        ("rules.lost_write", "from tensafe.errors import TensafeError"),
        ("check", "from tensafe.rules import catalogue"),
        ("collector", "from tensafe import __version__"),
        ("static.flow", "import torchfix"),
    ],
)
def test_a_line_that_follows_the_table_is_let_through(module: str, text: str) -> None:
    assert not broken(text, module)


def test_relative_imports_of_a_package_start_at_the_package() -> None:
    assert [name for _, name in imports("from .words import Site", "facts", is_package=True)] == [
        "tensafe.facts.words.Site"
    ]


LOST_WRITE = "import torch\n\nx = torch.zeros(3)\nx[x > 0].zero_()\n"
ABSENT = """raise ModuleNotFoundError(f"No module named {__name__!r}", name=__name__)\n"""


@pytest.fixture
def without_torch(tmp_path: Path) -> dict[str, str]:
    """An environment in which torch and NumPy cannot be imported, by this process's children either."""
    absent = tmp_path / "absent"
    absent.mkdir()
    for name in ("torch", "numpy"):
        (absent / f"{name}.py").write_text(ABSENT)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(absent), str(SOURCE.parent)])}


def python(environment: dict[str, str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_check_runs_without_torch(without_torch: dict[str, str], tmp_path: Path) -> None:
    files = [tmp_path / "first.py", tmp_path / "second.py"]
    for path in files:
        path.write_text(LOST_WRITE)
    done = python(without_torch, "-m", "tensafe", "check", *files)
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("lost-write") >= len(files), done.stdout + done.stderr


def test_a_page_is_made_without_torch(without_torch: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "lost.py").write_text(LOST_WRITE)
    record, page = tmp_path / "run.json", tmp_path / "run.html"
    for command in (
        ("check", "--format", "json", "--output", record, tmp_path / "lost.py"),
        ("report", record, "--format", "html", "--output", page),
    ):
        done = python(without_torch, "-m", "tensafe", *command)
        assert done.returncode == 1, done.stderr
    assert "lost-write" in page.read_text()


def test_the_torchless_environment_has_no_torch(without_torch: dict[str, str]) -> None:
    for module in ("torch", "numpy", "tensafe.runtime.engine"):
        done = python(without_torch, "-c", f"import {module}")
        assert done.returncode == 1
        assert re.search("No module named .(torch|numpy)", done.stderr), done.stderr


def test_importing_tensafe_imports_no_torch() -> None:
    code = "import sys, tensafe, tensafe.check, tensafe.cli; print({'torch', 'numpy'} & set(sys.modules))"
    done = python({**os.environ, "PYTHONPATH": str(SOURCE.parent)}, "-c", code)
    assert done.stdout == "set()\n", done.stdout + done.stderr
