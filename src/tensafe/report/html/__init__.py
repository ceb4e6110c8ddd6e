"""Pages and notebook fragments: self-contained, offline, everything in them escaped."""

from __future__ import annotations

from tensafe.report.html.checkpoint_page import checkpoint_page
from tensafe.report.html.explanation_fragment import explanation_fragment
from tensafe.report.html.explanation_page import explanation_page
from tensafe.report.html.findings.fragment import finding_fragment, record_fragment
from tensafe.report.html.findings.page import run_page
from tensafe.report.html.memory_fragment import memory_fragment
from tensafe.report.html.memory_page import memory_page

__all__ = [
    "checkpoint_page",
    "explanation_fragment",
    "explanation_page",
    "finding_fragment",
    "memory_fragment",
    "memory_page",
    "record_fragment",
    "run_page",
]
