"""The README shows real output: each `$ tensafe` or `$ python` line is run and gives what stands under it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```console\n\$ ((?:tensafe|python) [^\n]*)\n((?!\$ ).+?)\n```", re.S)
SHOWN = [block for block in BLOCK.findall((ROOT / "README.md").read_text()) if "```" not in block[1]]


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_command_prints_what_the_readme_shows(command: str, output: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    python = shlex.quote(sys.executable)
    line = re.sub(r"\btensafe (?=[a-z])", f"{python} -m tensafe ", command)
    line = re.sub(r"^python ", f"{python} ", line)
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(
        line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.rstrip("\n") == output


def test_there_is_output_to_compare() -> None:
    assert len(SHOWN) >= 7
