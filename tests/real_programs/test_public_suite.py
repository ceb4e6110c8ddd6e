"""The tests of a small public package end alike under `pytest --tensafe`, test by test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SUITE = ("test_layers", "test_packing", "test_ops", "test_einsum")
UNTOLD = "not compile"  # half a minute each of the compiler's own work
ENDED = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (.*?)(?: - .*)?$", re.M)


def outcomes(folder: Path, *options: str) -> tuple[int, list[tuple[str, str]], str]:
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-k", UNTOLD, *options]
    command += ["--pyargs", *(f"einops.tests.{name}" for name in SUITE)]
    environment = {**os.environ, "EINOPS_TEST_BACKENDS": "numpy,torch", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    return done.returncode, sorted(ENDED.findall(done.stdout)), done.stdout + done.stderr


@pytest.mark.program
def test_einops_own_tests_end_alike(tmp_path: Path) -> None:
    if find_spec("einops") is None:
        pytest.skip("einops is not installed")
    plain = outcomes(tmp_path)
    assert sum(outcome == "PASSED" for outcome, _ in plain[1]) > 30, plain[2]
    watched = outcomes(tmp_path, "-p", "tensafe.pytest_plugin", "--tensafe")
    assert watched[:2] == plain[:2]
    assert "nothing found" in watched[2]
