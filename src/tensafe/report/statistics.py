"""How many findings there are of each rule, and how many of them have a fix."""

from __future__ import annotations

import json
from collections.abc import Collection

from tensafe.findings import Finding, Record, Severity


def counted(record: Record, fixable: Collection[Finding]) -> list[dict[str, int | str]]:
    """One row for each rule, the most frequent first."""
    rows: dict[str, dict[str, int | str]] = {}
    fixes = set(fixable)
    for finding in record.findings:
        row = rows.setdefault(finding.code, _empty(finding))
        for column, true in (
            ("count", True),
            (finding.severity.value + "s", True),
            ("fixable", finding in fixes),
        ):
            row[column] = int(row[column]) + finding.count * true
    return sorted(rows.values(), key=lambda row: (-int(row["count"]), row["code"]))


def _empty(finding: Finding) -> dict[str, int | str]:
    severities = {f"{severity.value}s": 0 for severity in Severity}
    return {"code": finding.code, "name": finding.name, "count": 0, **severities, "fixable": 0}


def render(rows: list[dict[str, int | str]], as_json: bool) -> str:
    """The rows as a table, or as JSON."""
    if as_json:
        return json.dumps(rows, indent=1) + "\n"
    names = max((len(str(row["name"])) for row in rows), default=0)
    return "".join(_line(row, names) for row in rows)


def _line(row: dict[str, int | str], width: int) -> str:
    parts = [f"{row[f'{severity.value}s']} {severity.value}s" for severity in Severity]
    told = ", ".join(
        part[:-1] if part.startswith("1 ") else part for part in parts if not part.startswith("0 ")
    )
    fixes = f"; {row['fixable']} fixable" if row["fixable"] else ""
    return f"{row['count']:>5}  {row['code']}  {row['name']:{width}}  {told}{fixes}\n"
