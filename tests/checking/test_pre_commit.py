"""Our hooks, run by pre-commit from a clone; what pre-commit would install is the tensafe at hand."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checking.projects import FIXED, LOST
from notebooks.building import notebook
from tensafe.cli.check_options import parsed

ROOT = Path(__file__).parents[2]
HOOKS = ".pre-commit-hooks.yaml"


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=e", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def hooks(tmp_path: Path) -> tuple[Path, str]:
    """A clone with our hooks, and its commit."""
    clone = tmp_path / "clone"
    clone.mkdir()
    shutil.copy(ROOT / HOOKS, clone)
    git(clone, "init", "-q")
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", "one")
    return clone, git(clone, "rev-parse", "HEAD")


@pytest.fixture
def user(tmp_path: Path) -> Path:
    folder = tmp_path / "user"
    folder.mkdir()
    (folder / "a.py").write_text(LOST)
    (folder / "old.py").write_text(LOST)
    (folder / "a.ipynb").write_text(notebook("import torch\nx = torch.rand(3)", "x[x > 0].zero_()"))
    (folder / "notes.txt").write_text(LOST)
    (folder / "pyproject.toml").write_text('[tool.tensafe]\nexclude = ["old.py"]\n')
    git(folder, "init", "-q")
    return folder


def committed(user: Path, hooks: tuple[Path, str], hook: str) -> subprocess.CompletedProcess[str]:
    """What `pre-commit run` says; nothing is installed for the hook."""
    clone, commit = hooks
    entry = f"{shlex.quote(sys.executable)} -m tensafe check --force-exclude"
    (user / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {clone}\n  rev: {commit}\n  hooks:\n  - id: {hook}\n    language: system\n"
        f"    entry: {entry}{' --fix' if hook == 'tensafe-fix' else ''}\n"
    )
    git(user, "add", "-A")
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", "run"],
        cwd=user,
        env={**os.environ, "PRE_COMMIT_HOME": str(user.parent / "home"), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_hooks_run(user: Path, hooks: tuple[Path, str]) -> None:
    pytest.importorskip("pre_commit")
    done = committed(user, hooks, "tensafe-check")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "--> a.py:4:1" in done.stdout
    assert "--> a.ipynb:cell 2:1:1" in done.stdout
    assert "tensafe: 2 warnings in 2 of 2 files" in done.stdout
    done = committed(user, hooks, "tensafe-fix")
    assert "files were modified by this hook" in done.stdout
    assert ((user / "a.py").read_text(), (user / "old.py").read_text()) == (FIXED, LOST)
    done = committed(user, hooks, "tensafe-check")
    assert done.returncode == 0, done.stdout


def test_the_entries_are_commands_of_ours() -> None:
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load((ROOT / HOOKS).read_text())
    assert [hook["id"] for hook in found] == ["tensafe-check", "tensafe-fix"]
    for hook in found:
        program, command, *arguments = shlex.split(hook["entry"])
        assert (program, command, hook["language"]) == ("tensafe", "check", "python")
        assert parsed([*arguments, "a.py"]).force_exclude
        assert "torch" not in hook.get("additional_dependencies", ())
