"""Snippets are checked under a fixed head; the guilty line ends in `# finds TS000`."""

from __future__ import annotations

import re

from tensafe.check import check_text
from tensafe.findings import Severity
from tensafe.rules._loader import select

HEAD = """import copy
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
"""
_MARK = re.compile(r"# finds (TS\d{3})")


def found(snippet: str, path: str = "snippet.py") -> list[tuple[int, str]]:
    """(line, code) of every error and warning, lines counted in the snippet."""
    findings = check_text(HEAD + snippet, path, select())
    loud = [finding for finding in findings if finding.severity is not Severity.NOTICE]
    return sorted((finding.at.line - HEAD.count("\n"), finding.code) for finding in loud)


def expected(snippet: str) -> list[tuple[int, str]]:
    """What the marks in a snippet say."""
    lines = enumerate(snippet.splitlines(), 1)
    return sorted((number, code) for number, line in lines for code in _MARK.findall(line))
