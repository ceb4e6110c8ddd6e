"""A command line over real files and the real engine, in a folder of its own."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tensafe.__main__ import main

LOST = "import torch\n\nx = torch.rand(3)\nx[x > 0].zero_()\n"
FIXED = "import torch\n\nx = torch.rand(3)\nx[x > 0] = 0\n"


@dataclass
class Answer:
    """What a command said and how it ended."""

    status: int
    out: str
    err: str


Call = Callable[..., Answer]


@pytest.fixture
def check(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """`check("--fix", "a.py", stdin="...")`."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str | Path, stdin: str | bytes = b"") -> Answer:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        capfd.readouterr()
        status = main(["check", *map(str, arguments)])
        return Answer(status, *capfd.readouterr())

    return call


def codes(answer: Answer) -> list[str]:
    """The places and codes of a `grouped` answer, in order: `a.py 4 TS106`."""
    found, path = [], ""
    for line in answer.out.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            path = line[:-1]
        elif line.startswith("  "):
            place, _, code, *_ = line.split()
            found.append(f"{path} {place.split(':')[0]} {code}")
    return found
