"""Real bugs and their fixed twins: each bug is named at its line, and no engine says a word about a twin."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parent / "cases"
KINDS = (
    "saved-tensor-modified",
    "silent-gradient-corruption",
    "live-reference-snapshot",
    "lost-write",
    "graph-cut",
    "write-through-alias",
    "repeated-reference",
    "overlapping-write",
    "numpy-shared-write",
    "tied-weights-broken",
    "shared-memory",
    "write-during-save",
    "noncontiguous-view",
    "needless-copy",
    "storage-pinned",
    "serialization-bloat",
    "hidden-copy",
    "leaf-inplace",
    "view-inplace-forbidden",
    "numpy-requires-grad",
    "deepcopy-nonleaf",
    "deepcopy-slow-or-fails",
    "graph-retained",
    "missing-detach",
)


def _kind(path: Path) -> str:
    match = re.search(r"^kind:\s*(\S+)", path.read_text(), re.M)
    return match.group(1) if match else ""


def _marked(path: Path, mark: str) -> set[int]:
    return {number for number, line in enumerate(path.read_text().splitlines(), 1) if f"#@ {mark}" in line}


BUGS = sorted(path for path in CASES.rglob("*.py") if _kind(path) in KINDS and ".fixed." not in path.name)
TWINS = sorted(CASES.rglob("*.fixed.py"))
CHECK_FINDS = 110  # of these 111 bugs


def _findings(engine: str, script: Path, folder: Path) -> tuple[list[dict[str, object]], int, str]:
    record = folder / "record.json"
    command = [
        sys.executable,
        "-m",
        "tensafe",
        engine,
        "--format",
        "json",
        "--output",
        str(record),
        str(script),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert "Traceback" not in done.stderr or engine == "run"
    return json.loads(record.read_text())["findings"], done.returncode, done.stdout


@pytest.mark.parametrize("bug", BUGS, ids=lambda path: path.stem)
def test_a_run_names_the_bug_at_its_line(bug: Path, tmp_path: Path) -> None:
    found, status, stdout = _findings("run", bug, tmp_path)
    named = {f["location"]["line"] for f in found if f["name"] == _kind(bug)}
    assert named & _marked(bug, "culprit")
    plain = subprocess.run(
        [sys.executable, str(bug)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (status, stdout) == (plain.returncode, plain.stdout)


@pytest.mark.parametrize("twin", TWINS, ids=lambda path: path.stem)
def test_a_run_of_a_fixed_twin_is_silent(twin: Path, tmp_path: Path) -> None:
    found, _, _ = _findings("run", twin, tmp_path)
    assert [f for f in found if f["severity"] != "notice"] == []


def test_the_source_of_the_fixed_twins_is_silent(tmp_path: Path) -> None:
    for twin in TWINS:
        (tmp_path / twin.name).write_text(twin.read_text())
    found, _, _ = _findings("check", tmp_path, tmp_path)
    assert [(f["code"], f["location"]) for f in found if f["severity"] != "notice"] == []


def test_the_source_shows_most_of_the_bugs(tmp_path: Path) -> None:
    hits = []
    for bug in BUGS:
        found, _, _ = _findings("check", bug, tmp_path)
        lines = {f["location"]["line"] for f in found if f["name"] == _kind(bug)}
        hits += [bug.stem] if lines & _marked(bug, "culprit") else []
    assert len(hits) >= CHECK_FINDS, hits
