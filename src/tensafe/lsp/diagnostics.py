"""Findings in the words of the protocol."""

from __future__ import annotations

from lsprotocol import types
from pygls import uris

from tensafe.findings import Because, Finding, Severity
from tensafe.lsp.looking import Looked
from tensafe.lsp.positions import Positions

SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTICE: types.DiagnosticSeverity.Information,
}


def diagnostics(looked: Looked) -> list[types.Diagnostic]:
    """One diagnostic for each finding, with the other places that belong to it."""
    return [diagnostic(finding, looked) for finding in looked.findings]


def diagnostic(finding: Finding, looked: Looked) -> types.Diagnostic:
    """The finding as the client shows it."""
    return types.Diagnostic(
        range=looked.positions.range_of(finding.at),
        message="\n".join(filter(None, [finding.message, finding.help])),
        severity=SEVERITIES[finding.severity],
        code=f"{finding.code} {finding.name}",
        source="tensafe",
        related_information=[_related(item, looked) for item in finding.because],
    )


def _related(item: Because, looked: Looked) -> types.DiagnosticRelatedInformation:
    positions = looked.positions if item.site.path == looked.path else Positions("", "utf-32")
    uri = uris.from_fs_path(item.site.path) or item.site.path
    words = f"{item.role}: {item.message}" if item.message else item.role
    return types.DiagnosticRelatedInformation(types.Location(uri, positions.range_of(item.site)), words)
