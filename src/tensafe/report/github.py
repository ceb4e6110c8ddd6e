"""Findings as GitHub workflow commands, which annotate the lines of a pull request."""

from __future__ import annotations

from tensafe.findings import Finding, Record
from tensafe.findings.cells import split_cell
from tensafe.report.places import shown_path
from tensafe.report.text import View, shown


def render(record: Record, view: View) -> str:
    """One `::error file=...::message` line per finding, one `::notice` per thing not checked."""
    lines = [_annotation(finding, view) for finding in shown(record, view.notices)]
    lines += [
        f"::notice::tensafe did not check {_data(item.what)}: {_data(item.why)}"
        for item in record.not_checked
    ]
    return "".join(line + "\n" for line in lines)


def _annotation(finding: Finding, view: View) -> str:
    site, root = finding.at, view.root
    path, cell = split_cell(site.path)
    line = view.sources.file_line(site) or site.line
    fields = {
        "file": shown_path(path, root).replace("\\", "/"),
        "line": line,
        "endLine": max(line, line + site.end_line - site.line),
        "title": f"{finding.code} {finding.name}",
    }
    one_line = site.end_line in (0, site.line)  # columns are refused for spans of several lines
    if site.end_column and one_line and cell is None:
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
