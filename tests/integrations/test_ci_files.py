"""The workflows of examples/ci: they parse, and every command of ours in them does what it is there for."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tensafe.checking.cache import cache_folder

FOLDER = Path(__file__).parents[2] / "examples" / "ci"
CLEAN = "import torch\n\nx = torch.ones(3)\nx[x > 0] = 0\n"
BUGGY = "import torch\n\nx = torch.ones(3)\nx[x > 0].zero_()\n"
TEST = "import runpy\nimport torch\n\ndef test_a():\n    runpy.run_path('src/a.py')\n"
FAKED = ("pip",)  # installs tensafe from an index


def steps(workflow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


def commands(name: str) -> list[str]:
    """Every line that a shell is given, in order."""
    loaded = yaml.safe_load((FOLDER / name).read_text())
    if name == "gitlab.yml":
        return [line for job in loaded.values() for line in job["script"]]
    return [line for step in steps(loaded) for line in step.get("run", "").splitlines()]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder as the workflows expect it, and a PATH on which `tensafe` and `pytest` are these."""
    for path, text in {"src/a.py": CLEAN, "tests/test_a.py": TEST, "train.py": f"print(1)\n{CLEAN}"}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in ("tensafe", "pytest", *FAKED):
        options = " -p tensafe.pytest_plugin" if program == "pytest" else ""
        body = "true" if program in FAKED else f'{shlex.quote(sys.executable)} -m {program}{options} "$@"'
        (programs / program).write_text(f"#!/bin/sh\nexec {body}\n")
        (programs / program).chmod(0o755)
    run("tensafe check --baseline tensafe-baseline.json --write-baseline src/", tmp_path)
    return tmp_path


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """As a runner does it: each step in a shell that ends at the first failure."""
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        ["bash", "-e", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def ours(name: str) -> list[str]:
    return [line for line in commands(name) if line.split()[0] in ("tensafe", "pytest")]


@pytest.mark.parametrize("name", ["tensafe.yml", "gitlab.yml"])
def test_a_clean_project_passes_every_step(name: str, project: Path) -> None:
    assert [line.split()[0] for line in commands(name) if line not in ours(name)] == ["pip", "pip"]
    for line in commands(name):
        done = run(line, project)
        assert done.returncode == 0, (line, done.stdout, done.stderr)


def test_new_bugs_fail_the_steps_that_are_to_fail(project: Path) -> None:
    (project / "src/a.py").write_text(BUGGY)
    (project / "train.py").write_text(BUGGY)
    failed = {line: run(line, project) for line in ours("tensafe.yml")}
    statuses = {line.split(" --output")[0].split(" src/")[0]: one.returncode for line, one in failed.items()}
    assert statuses == {
        "tensafe check --baseline tensafe-baseline.json --format sarif": 0,
        "tensafe check --baseline tensafe-baseline.json --format github": 1,
        "pytest --tensafe=error tests/": 1,
        "tensafe run --strict --format json": 1,
        "tensafe report tensafe-run.json --format html": 0,
    }
    assert "TS106" in (project / "tensafe.sarif").read_text()
    annotations = next(one.stdout for line, one in failed.items() if "--format github" in line)
    assert "file=src/a.py,line=4" in annotations
    assert "lost-write" in (project / "tensafe-run.html").read_text()
    assert "lost-write" in next(one.stdout for line, one in failed.items() if line.startswith("pytest"))


def test_what_is_uploaded_and_cached_is_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = yaml.safe_load((FOLDER / "tensafe.yml").read_text())
    wishes = {step["uses"].split("@")[0]: step.get("with", {}) for step in steps(loaded) if "uses" in step}
    lines = "\n".join(ours("tensafe.yml"))
    assert f"--output {wishes['github/codeql-action/upload-sarif']['sarif_file']} " in lines
    assert f"--output {wishes['actions/upload-artifact']['path']} " in lines
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    kept = Path(wishes["actions/cache"]["path"]).expanduser()
    if sys.platform.startswith("linux"):
        assert kept in (cache_folder() or Path()).parents
    job = yaml.safe_load((FOLDER / "gitlab.yml").read_text())["tensafe-source"]
    monkeypatch.setenv(
        "XDG_CACHE_HOME", job["variables"]["XDG_CACHE_HOME"].replace("$CI_PROJECT_DIR/", "/p/")
    )
    assert Path("/p", job["cache"]["paths"][0]) in (cache_folder() or Path()).parents


def test_scanning_may_write_and_nothing_else_may() -> None:
    loaded = yaml.safe_load((FOLDER / "tensafe.yml").read_text())
    assert set(loaded[True]) == {"push", "pull_request"}  # YAML 1.1 reads `on` as true, as GitHub does not
    assert loaded["permissions"] == {"contents": "read"}
    granted = [job.get("permissions", {}) for job in loaded["jobs"].values()]
    assert granted == [{"contents": "read", "security-events": "write"}, {}]
