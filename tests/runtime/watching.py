"""Snippets under the runtime engine, in this process."""

from __future__ import annotations

import itertools
import textwrap
from pathlib import Path

from tensafe.findings import Finding, Record, Severity
from tensafe.rules._loader import catalogue
from tensafe.run import watch_text

_numbers = itertools.count()
SETUP = (
    "import copy\nimport numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
)


def watch(code: str, folder: Path, setup: str = SETUP) -> Record:
    """The record of a snippet; fails when the engine itself failed."""
    path = folder / f"snippet{next(_numbers)}.py"
    text = setup + textwrap.dedent(code)
    path.write_text(text)
    record = watch_text(text, str(path), catalogue())
    failures = [item for item in record.not_checked if "failed" in item.why or "could not start" in item.why]
    assert not failures, failures
    return record


def lines(record: Record, code: str) -> list[str]:
    """The source text of the primary lines that a rule reported, without notices."""
    return [line_of(finding) for finding in loud(record) if finding.code == code]


def loud(record: Record) -> list[Finding]:
    return [finding for finding in record.findings if finding.severity is not Severity.NOTICE]


def line_of(finding: Finding) -> str:
    return Path(finding.at.path).read_text().splitlines()[finding.at.line - 1].strip()
