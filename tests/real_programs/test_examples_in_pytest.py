"""The project's own examples as tests of a suite: they end alike with and without `pytest --tensafe`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from .test_examples import BUGS, EXAMPLES, LIBRARY
from .test_public_suite import ENDED

SUITE = f"""
import runpy
from pathlib import Path

import pytest
import torch

EXAMPLES = Path({str(EXAMPLES)!r})
LIBRARY = {LIBRARY!r}


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_example(name, tmp_path, monkeypatch, capfd):
    pytest.importorskip(LIBRARY.get(name, "torch"))
    here = Path.cwd()
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    try:
        runpy.run_path(str(EXAMPLES / f"{{name}}.py"), run_name="__main__")
    finally:
        printed = capfd.readouterr().out
        numbers = torch.get_rng_state().sum().item(), torch.rand(3).tolist()
        (here / name).write_text(f"{{printed}}\\n{{numbers}}\\n")
"""
OF_OURS = "accelerate_loop"  # prints what its own `watching()` says, which knows of the engine around it
WITHOUT_TRAINERS = " and ".join(f"not {name}" for name in LIBRARY)


class Session(NamedTuple):
    """How a session ended, each test by its outcome, and what each program printed and drew at random."""

    status: int
    outcomes: list[tuple[str, str]]
    printed: dict[str, str]
    output: str


def session(folder: Path, *options: str) -> Session:
    folder.mkdir()
    (folder / "test_suite.py").write_text(SUITE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rA",
        "-p",
        "no:cacheprovider",
        *options,
        "test_suite.py",
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OMP_NUM_THREADS": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
    printed = {path.name: path.read_text() for path in folder.iterdir() if path.name in names()}
    output = done.stdout + done.stderr
    return Session(done.returncode, sorted(ENDED.findall(done.stdout)), printed, output)


def names() -> set[str]:
    return {path.stem for path in EXAMPLES.glob("*.py")} - {OF_OURS}


WATCHED = ("-p", "tensafe.pytest_plugin", "--tensafe")


@pytest.mark.program
def test_every_example_ends_alike_and_its_bug_is_told(tmp_path: Path) -> None:
    plain, watched = session(tmp_path / "plain"), session(tmp_path / "watched", *WATCHED)
    assert len(plain.outcomes) == len(names()) + 1, plain.output
    assert plain.status == 1, "train_residual stops, as it does for its readers"
    assert watched[:3] == plain[:3]
    told = {rule for name, (rule, _) in BUGS.items() if name not in LIBRARY}
    assert all(f" {rule}: " in watched.output for rule in told), watched.output


@pytest.mark.program
def test_examples_end_alike_in_two_workers(tmp_path: Path) -> None:
    workers = ("-k", WITHOUT_TRAINERS, "-p", "xdist", "-n", "2")
    plain, watched = session(tmp_path / "plain", *workers), session(tmp_path / "watched", *workers, *WATCHED)
    assert len(plain.outcomes) == len(names() - {*LIBRARY}), plain.output
    assert watched[:3] == plain[:3]
