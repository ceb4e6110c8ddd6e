"""Programs with child processes, each run plainly and under `tensafe run`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tensafe.findings import Finding, Record, Severity, from_json

LOSE = """
import os, sys, time
import torch

def lose():
    x = torch.ones(3)
    x[x > 0].zero_()  # the lost write
"""


@dataclass
class Both:
    """The two runs of a program."""

    plain: subprocess.CompletedProcess[str]
    watched: subprocess.CompletedProcess[str]
    record: Record
    leftover: list[str]  # what lies in the temporary folder afterwards

    @property
    def loud(self) -> list[Finding]:
        return [item for item in self.record.findings if item.severity is not Severity.NOTICE]

    @property
    def unknown(self) -> list[str]:
        return [f"{item.what}: {item.why}" for item in self.record.not_checked]


def both(
    code: str, folder: Path, options: Sequence[str] = (), command: Sequence[str] = (), setup: str = LOSE
) -> Both:
    """Run a program both ways; `command` stands between `tensafe run` (or python) and the script."""
    (folder / "program.py").write_text(setup + textwrap.dedent(code))
    output = folder / "run.json"
    tensafe = ["-m", "tensafe", "run", "--format", "json", "--output", str(output), *options]
    plain = python([*command, "program.py"], folder)
    with tempfile.TemporaryDirectory() as temporary:
        watched = python([*tensafe, *command, "program.py"], folder, TMPDIR=temporary)
        leftover = [name for name in os.listdir(temporary) if name.startswith("tensafe-")]
    return Both(plain, watched, from_json(output.read_text()), leftover)


def python(command: Sequence[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def same(runs: Both) -> bool:
    """Whether the program could not tell that it was watched."""
    plain, watched = runs.plain, runs.watched
    assert watched.stdout == plain.stdout, watched.stderr
    assert watched.returncode == plain.returncode, watched.stderr
    assert not runs.leftover
    return True
