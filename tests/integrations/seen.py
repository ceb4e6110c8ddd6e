"""What the tests of all callbacks ask: which line, what was found, the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch


def line_of(words: str, path: str) -> int:
    """The line of a test's own file that says just this."""
    lines = Path(path).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip() == words)


def loud(callback: Any) -> list[tuple[str, str, int]]:
    return [
        (finding.code, finding.location.path, finding.location.line)
        for finding in callback.findings
        if finding.severity.value != "notice"
    ]


def same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
