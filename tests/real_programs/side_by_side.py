"""Runs a program under plain Python and under `tensafe run`, and says in what they differ."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMEOUT = 300  # seconds; generous, for loaded machines
ALARMS = ("error", "warning")


@dataclass(frozen=True)
class Ended:
    """What a user sees of a finished program."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class SideBySide:
    """Both runs of one program, and the record that tensafe wrote."""

    plain: Ended
    watched: Ended
    record: dict[str, Any] | None

    @property
    def alarms(self) -> list[str]:
        """Findings that claim a bug, one line each."""
        found = self.record["findings"] if self.record else []
        return [described(finding) for finding in found if finding["severity"] in ALARMS]

    def differences(self, mask: str | None = None) -> list[str]:
        """In what the watched run is unlike the plain one; `mask` matches the seconds a program prints."""
        unlike = []
        if self.watched.status != self.plain.status:
            unlike.append(f"exit status {self.watched.status}, plain {self.plain.status}")
        if masked(self.watched.stdout, mask) != masked(self.plain.stdout, mask):
            unlike.append(
                first_unlike_line(masked(self.watched.stdout, mask), masked(self.plain.stdout, mask))
            )
        if self.record is None:
            unlike.append(f"no record was written: {self.watched.stderr.strip()[-400:]}")
        return unlike


def described(finding: dict[str, Any]) -> str:
    place = finding["location"]
    return f"{finding['severity']} {finding['code']} {place['path']}:{place['line']}: {finding['message']}"


def masked(text: str, mask: str | None) -> str:
    return re.sub(mask, "…", text) if mask else text


def first_unlike_line(ours: str, plain: str) -> str:
    """The first line of standard output that differs, and both texts of it."""
    mine, its = ours.splitlines(), plain.splitlines()
    for number in range(max(len(mine), len(its))):
        pair = [lines[number] if number < len(lines) else "nothing" for lines in (mine, its)]
        if pair[0] != pair[1]:
            return f"stdout line {number + 1} is {pair[0]!r}, plain {pair[1]!r}"
    return "stdout ends in another way"


def run(command: Sequence[str], folder: Path) -> Ended:
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def side_by_side(program: Path, scratch: Path, arguments: Sequence[str] = ()) -> SideBySide:
    """Both runs, each in an empty folder of its own."""
    folders = [scratch / name for name in ("plain", "watched")]
    for folder in folders:
        folder.mkdir()
    script = [str(program), *arguments]
    output = scratch / "record.json"
    tensafe = [sys.executable, "-m", "tensafe", "run", "--format", "json", "--output", str(output)]
    plain = run([sys.executable, *script], folders[0])
    watched = run([*tensafe, *script], folders[1])
    return SideBySide(plain, watched, json.loads(output.read_text()) if output.exists() else None)
