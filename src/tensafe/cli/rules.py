"""`tensafe rules`: one line per rule."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from tensafe.cli.options import Parser


def carry_out(argv: Sequence[str]) -> int:
    """List the catalogue by code."""
    from tensafe.report.terminal import write_text
    from tensafe.rules._loader import Rule, catalogue

    parser = Parser("rules", description="List all rules: code, name, severity, what each reports.")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="how to tell it (default: text)"
    )
    chosen = parser.parse_args(argv)
    rules = catalogue()
    if chosen.format == "json":

        def row(rule: Rule) -> dict[str, Any]:
            return {
                "code": rule.code,
                "name": rule.name,
                "severity": rule.severity.value,
                "since": rule.since,
                "has_fix": rule.has_fix,
                "headline": rule.page.headline,
            }

        write_text(json.dumps([row(rule) for rule in rules], indent=1) + "\n", sys.stdout)
        return 0
    width = max(len(rule.name) for rule in rules)
    for rule in rules:
        fix = "fix" if rule.has_fix else "   "
        words = f"{rule.code}  {rule.name:{width}}  {rule.severity.value:7}  {fix}  {rule.page.headline}\n"
        write_text(words, sys.stdout)
    return 0
