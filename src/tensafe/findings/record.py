"""The record between seeing and telling: one Run as JSON, version 1."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from tensafe.errors import RecordError
from tensafe.facts import Site
from tensafe.findings.cells import cell_path, split_cell
from tensafe.findings.copies import CopyLine
from tensafe.findings.copies import from_json as copy_from_json
from tensafe.findings.copies import to_json as copy_to_json
from tensafe.findings.finding import Because, Finding, NotChecked, Severity, When
from tensafe.findings.fix_record import fix_from_json, fix_to_json
from tensafe.findings.memory_record import memory_from_json, memory_to_json

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Record:
    """Everything one run or one check has to tell; `summary` holds counts and `seconds`."""

    engine: str  # "run" or "check"
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    summary: Mapping[str, float | int | str] = field(default_factory=dict)
    tool_version: str = ""
    copies: tuple[CopyLine, ...] | None = None  # by line, where the run was asked for them


_AMOUNT = re.compile(r"(?<![\w.`])\d[\d.,]*(?: ?[kMGT]?B)?(?![\w`])")


def alike(finding: Finding) -> Finding:
    """What all findings of one fault have in common: their sizes and counts may differ from step to step."""
    because = tuple(replace(other, message=_AMOUNT.sub("#", other.message)) for other in finding.because)
    message, help_ = _AMOUNT.sub("#", finding.message), _AMOUNT.sub("#", finding.help)
    return replace(finding, message=message, help=help_, because=because, count=1, memory=())


def collapse(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings of one fault become the first of them, with a count; the order of first sight stays."""
    first: dict[Finding, Finding] = {}
    counts: Counter[Finding] = Counter()
    for finding in findings:
        key = alike(finding)
        first.setdefault(key, finding)
        counts[key] += finding.count
    return tuple(replace(finding, count=counts[key]) for key, finding in first.items())


def to_json(record: Record) -> str:
    """The JSON text of a record, as described in the README under "The record"."""
    copies = {} if record.copies is None else {"copies": [copy_to_json(row) for row in record.copies]}
    return json.dumps(
        {
            "version": FORMAT_VERSION,
            "tool": "tensafe",
            "tool_version": record.tool_version,
            "engine": record.engine,
            "findings": [finding_to_json(finding) for finding in record.findings],
            "not_checked": [{"what": item.what, "why": item.why} for item in record.not_checked],
            **copies,
            "summary": dict(record.summary),
        },
        indent=1,
    )


def from_json(text: str) -> Record:
    """Read a record back; raises `RecordError` when the text is not one."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise RecordError(f"not a tensafe record: invalid JSON ({error})") from None
    if not isinstance(data, dict) or data.get("tool") != "tensafe":
        raise RecordError('not a tensafe record: no `"tool": "tensafe"` in it')
    if data.get("version") != FORMAT_VERSION:
        raise RecordError(
            f"record version {data.get('version')!r} is not {FORMAT_VERSION}: its own tensafe can read it"
        )
    try:
        return Record(
            engine=str(data["engine"]),
            findings=tuple(finding_from_json(item) for item in data["findings"]),
            not_checked=tuple(NotChecked(item["what"], item["why"]) for item in data["not_checked"]),
            summary=dict(data["summary"]),
            tool_version=str(data["tool_version"]),
            copies=tuple(map(copy_from_json, data["copies"])) if "copies" in data else None,
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RecordError(f"not a tensafe record: {type(error).__name__} at {error}") from None


def _site_to_json(site: Site) -> dict[str, Any]:
    path, cell = split_cell(site.path)
    return {
        "path": path,
        **({"cell": cell} if cell is not None else {}),
        "line": site.line,
        "column": site.column,
        "end_line": site.end_line or site.line,
        "end_column": site.end_column,
        "function": site.function,
    }


def _site_from_json(data: Mapping[str, Any]) -> Site:
    path = str(data["path"])
    return Site(
        cell_path(path, int(data["cell"])) if "cell" in data else path,
        int(data["line"]),
        int(data["column"]),
        int(data["end_line"]),
        int(data["end_column"]),
        str(data["function"]),
    )


def _related_to_json(item: Because) -> dict[str, Any]:
    when = {"when": item.when} if item.when else {}
    return {"role": item.role, **_site_to_json(item.site), "message": item.message, **when}


def _related_from_json(data: Mapping[str, Any]) -> Because:
    site = _site_from_json(data)
    when: When = data.get("when", "")
    if when not in get_args(When):
        raise ValueError(f"unknown time {when!r}")
    return Because(site, str(data["role"]), str(data["message"]), when)


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """One finding as it stands in the record."""
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "label": finding.label,
        "location": _site_to_json(finding.at),
        "related": [_related_to_json(item) for item in finding.because],
        "help": finding.help,
        "fix": fix_to_json(finding.fix) if finding.fix else None,
        "count": finding.count,
        "rank": finding.rank,
        **({"processes": list(finding.processes)} if finding.processes else {}),
        **({"memory": [memory_to_json(memory) for memory in finding.memory]} if finding.memory else {}),
    }


def finding_from_json(data: Mapping[str, Any]) -> Finding:
    """Back from the record."""
    return Finding(
        code=str(data["code"]),
        message=str(data["message"]),
        at=_site_from_json(data["location"]),
        because=tuple(_related_from_json(item) for item in data["related"]),
        label=str(data.get("label", "")),
        name=str(data["name"]),
        severity=Severity(data["severity"]),
        help=str(data["help"]),
        fix=fix_from_json(data["fix"]) if data["fix"] else None,
        count=int(data["count"]),
        rank=data["rank"],
        processes=tuple(map(str, data.get("processes", ()))),
        memory=tuple(map(memory_from_json, data.get("memory", ()))),
    )
