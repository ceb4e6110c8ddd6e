"""One open document: its text, what was found in it, and how the client counts columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tensafe import check
from tensafe.checking.config import settings_for
from tensafe.findings import Finding, Severity
from tensafe.lsp.positions import Positions


@dataclass(frozen=True)
class Wishes:
    """What the command line asks of the server."""

    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    notices: bool = False


@dataclass(frozen=True)
class Looked:
    """A version of a document and the findings in it."""

    path: str
    text: str
    version: int | None
    positions: Positions
    findings: tuple[Finding, ...]
    wishes: Wishes
    consulted: frozenset[str] = frozenset()  # the files that it calls, and those it looked for in vain

    def again(self, text: str) -> list[Finding]:
        """The findings after an edit."""
        return _found_in(text, self.path, self.wishes)[0]


def look(path: str, text: str, version: int | None, encoding: str, wishes: Wishes) -> Looked:
    """Check a document as it is in the editor; nothing is found in what is no Python."""
    try:
        findings, consulted = _found_in(text, path, wishes)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        findings, consulted = [], frozenset()
    return Looked(path, text, version, Positions(text, encoding), tuple(findings), wishes, consulted)


def _found_in(text: str, path: str, wishes: Wishes) -> tuple[list[Finding], frozenset[str]]:
    """What the project wants to hear of this text, and the other files on which that rests."""
    settings = settings_for(Path(path))
    if settings.excludes(path):
        return [], frozenset()
    outcome = check.look(text, path, settings.rules(wishes.select, wishes.ignore))
    found = [
        settings.judged(item)
        for item in outcome.findings
        if item.at.path == path and not settings.ignores(item)
    ]
    wanted = [item for item in found if wishes.notices or item.severity is not Severity.NOTICE]
    return wanted, frozenset(outcome.consulted)
