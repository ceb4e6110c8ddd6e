"""The documentation site, built once for the tests of a worker, and a browser to open it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from documents.built import Site
from documents.pages import ROOT
from report.html.conftest import opened as opened


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site as `make docs` builds it; a warning ends the build."""
    if find_spec("material") is None or find_spec("mkdocstrings") is None:
        reason = "the documentation site is built with: pip install -e '.[docs]'"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", **without_network()}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Site(Path(folder))


def without_network() -> dict[str, str]:
    """What makes each request of the build fail."""
    return dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
