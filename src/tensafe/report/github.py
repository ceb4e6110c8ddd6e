"""Findings as GitHub workflow commands, which annotate the lines of a pull request."""

from __future__ import annotations

from tensafe.findings import Finding, Record
from tensafe.report.places import shown_path
from tensafe.report.text import shown


def render(record: Record, root: str, notices: bool) -> str:
    """One `::error file=...::message` line per finding, one `::notice` per thing not checked."""
    lines = [_annotation(finding, root) for finding in shown(record, notices)]
    lines += [
        f"::notice::tensafe did not check {_data(item.what)}: {_data(item.why)}"
        for item in record.not_checked
    ]
    return "".join(line + "\n" for line in lines)


def _annotation(finding: Finding, root: str) -> str:
    site = finding.at
    fields = {
        "file": shown_path(site.path, root).replace("\\", "/"),
        "line": site.line,
        "endLine": max(site.line, site.end_line),
        "title": f"{finding.code} {finding.name}",
    }
    if site.end_column and site.end_line in (0, site.line):  # columns are refused for spans of several lines
        fields |= {"col": site.column, "endColumn": site.end_column}
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in fields.items())
    return f"::{finding.severity.value} {properties}::{_data(_words(finding, root))}"


def _words(finding: Finding, root: str) -> str:
    related = [
        f"{shown_path(item.site.path, root)}:{item.site.line}: {item.role}" for item in finding.because
    ]
    return "\n".join([finding.message, *related, *([f"help: {finding.help}"] if finding.help else [])])


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
