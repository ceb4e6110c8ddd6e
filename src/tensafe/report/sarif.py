"""A record as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tensafe import __version__
from tensafe.findings import Because, Finding, Fix, Record, Severity, Site
from tensafe.findings.cells import split_cell
from tensafe.report.places import shown_path
from tensafe.report.text import Change, View, shown

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTICE: "note"}


@dataclass(frozen=True, slots=True)
class RuleText:
    """What SARIF wants to know of a rule; the command line reads it from the catalogue."""

    code: str
    name: str
    headline: str
    page: str  # Markdown
    severity: Severity


def render(record: Record, rules: Sequence[RuleText], view: View) -> str:
    """The log with one run; paths below the folder of the view are relative to it."""
    index = {rule.code: number for number, rule in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "tensafe",
                "version": record.tool_version or __version__,
                "rules": [_rule(r) for r in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"ROOT": {"uri": Path(view.root).as_uri().rstrip("/") + "/"}},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [_notice(i.what, i.why) for i in record.not_checked],
            }
        ],
        "results": [_result(finding, index, view) for finding in shown(record, view.notices)],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(rule: RuleText) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.headline},
        "fullDescription": {"text": rule.headline},
        "help": {"text": rule.page, "markdown": rule.page},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _notice(what: str, why: str) -> dict[str, Any]:
    return {"level": "note", "message": {"text": f"not checked: {what}: {why}"}}


def _result(finding: Finding, index: dict[str, int], view: View) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": LEVELS[finding.severity],
        "message": {"text": "\n".join([finding.message, *([finding.help] if finding.help else [])])},
        "locations": [_location(finding.at, view, finding.label)],
        "relatedLocations": [_related(number, item, view) for number, item in enumerate(finding.because, 1)],
        "occurrenceCount": finding.count,
    }
    if finding.code in index:
        result["ruleIndex"] = index[finding.code]
    if finding in view.changes and finding.fix:
        result["fixes"] = [_fix(finding.fix, finding.help, view.changes[finding], view.root)]
    return result


def _fix(fix: Fix, help_: str, changes: Sequence[Change], root: str) -> dict[str, Any]:
    """One fix; `properties.safe` says whether it can be applied unseen."""
    by_path: dict[str, list[dict[str, Any]]] = {}
    for change in changes:
        by_path.setdefault(change.site.path, []).append(
            {"deletedRegion": _region(change.site), "insertedContent": {"text": change.text}}
        )
    return {
        "description": {"text": fix.title or help_},
        "artifactChanges": [
            {"artifactLocation": _artifact(path, root), "replacements": replacements}
            for path, replacements in by_path.items()
        ],
        "properties": {"safe": fix.safe},
    }


def _related(number: int, item: Because, view: View) -> dict[str, Any]:
    words = f"{item.role}: {item.message}" if item.message else item.role
    return {"id": number, **_location(item.site, view, words)}


def _location(site: Site, view: View, words: str) -> dict[str, Any]:
    path, cell = split_cell(site.path)
    region = _region(site) if cell is None else {"startLine": view.sources.file_line(site) or 1}
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": _artifact(path, view.root), "region": region}
    }
    logical = [{"name": f"cell {cell}", "kind": "member"}] if cell is not None else []
    logical += [{"fullyQualifiedName": site.function, "kind": "function"}] if site.function else []
    if logical:
        location["logicalLocations"] = logical
    if words:
        location["message"] = {"text": words}
    return location


def _region(site: Site) -> dict[str, Any]:
    region = {"startLine": site.line, "endLine": max(site.line, site.end_line)}
    return region | ({"startColumn": site.column, "endColumn": site.end_column} if site.end_column else {})


def _artifact(path: str, root: str) -> dict[str, str]:
    inside = shown_path(path, root)
    if not os.path.isabs(inside):
        return {"uri": quote(os.fsencode(inside.replace(os.sep, "/"))), "uriBaseId": "ROOT"}
    return {"uri": Path(inside).as_uri()}
