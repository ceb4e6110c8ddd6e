"""`--plot` of the scripts in bench/: the image is made, with the figures that are printed or recorded."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from importlib.util import find_spec
from pathlib import Path

import pytest

from tensafe.findings import size

BENCH = Path(__file__).parents[1] / "bench"
PROGRAM = """
import torch
table = torch.zeros(1000, 100)
for _ in range(3):
    turned = table.t().contiguous()
kept = table.clone()
kept.add_(1)
"""


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)], cwd=folder, capture_output=True, text=True, check=False
    )


def texts(svg: Path) -> list[str]:
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg.read_text())]


@pytest.fixture
def record(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    command = ("-m", "tensafe", "run", "--copies", "--format", "json", "--output", "run.json", "train.py")
    assert run(*command, folder=tmp_path).returncode == 0
    return tmp_path / "run.json"


@pytest.fixture(autouse=True)
def matplotlib() -> None:
    if find_spec("matplotlib") is None:
        pytest.skip("matplotlib is not installed")


def test_bytes_by_line(record: Path) -> None:
    folder = record.parent
    rows = json.loads(record.read_text())["copies"]
    assert len(rows) == 2
    for name in ("copies.svg", "copies.png"):
        done = run(BENCH / "copies_by_line.py", record, "--plot", folder / name, folder=folder)
        assert done.returncode == 0, done.stderr
    shown = texts(folder / "copies.svg")
    for row in rows:
        assert size(row["nbytes"]) in shown
        assert any(text.startswith(f"train.py:{row['line']} {row['op']}") for text in shown)
    assert (folder / "copies.png").read_bytes().startswith(b"\x89PNG")
    printed = run(BENCH / "copies_by_line.py", record, folder=folder).stdout.splitlines()
    assert printed[0].lstrip().startswith(size(max(row["nbytes"] for row in rows)))


def test_a_benchmark_draws_what_it_prints(tmp_path: Path) -> None:
    options = ("--only", "one Linear", "--rounds", "1", "--rivals", "pickle", "--plot", "plot.svg")
    done = run(BENCH / "copies.py", *options, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = dict(re.findall(r"^  (\S.*?) +[\d.]+ ms +([\d.]+x)", done.stdout, re.M))
    shown = texts(tmp_path / "plot.svg")
    drawn = [text for text in shown if re.fullmatch(r"[\d.]+x", text)]
    assert sorted(drawn) == sorted(ratio for name, ratio in printed.items() if name != "copy.deepcopy")
    assert {"one Linear", "tensafe.deepcopy"} <= set(shown)


@pytest.mark.parametrize("script", ["copies.py", "pickles.py", "snapshots.py", "run_overhead.py"])
def test_a_file_that_is_no_image_is_refused_at_once(script: str, tmp_path: Path) -> None:
    done = run(BENCH / script, "--plot", "plot.txt", folder=tmp_path)
    assert done.returncode == 2
    assert "plot.txt: name a file that ends in .png or .svg" in done.stderr.splitlines()[-1]


def test_a_record_without_copies_is_refused(record: Path) -> None:
    record.write_text(json.dumps({**json.loads(record.read_text()), "copies": []}))
    done = run(BENCH / "copies_by_line.py", record, "--plot", "x.svg", folder=record.parent)
    assert done.returncode == 2
    assert "run --copies" in done.stderr.splitlines()[-1]
