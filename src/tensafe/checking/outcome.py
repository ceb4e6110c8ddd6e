"""What the check of one file gave, as data that travels between processes and into the cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tensafe.checking.comments import AllowComment
from tensafe.findings import Finding, NotChecked
from tensafe.findings.allow import Use
from tensafe.findings.record import finding_from_json, finding_to_json


@dataclass
class Outcome:
    """Findings, what was not checked, and on what all of it depends."""

    findings: list[Finding] = field(default_factory=list)
    not_checked: list[NotChecked] = field(default_factory=list)
    lines: int = 0
    gave_up: int = 0  # functions too large to be followed to their end
    uses: list[Use] = field(default_factory=list)  # comments that silenced something
    comments: list[AllowComment] = field(default_factory=list)
    digest: str = ""  # of the file's bytes; empty when the same bytes may give something else
    consulted: dict[str, str] = field(default_factory=dict)  # other files, by path: their digests


def to_json(outcome: Outcome) -> dict[str, Any]:
    """As it stands in the cache."""
    return {
        "findings": [finding_to_json(finding) for finding in outcome.findings],
        "not_checked": [[item.what, item.why] for item in outcome.not_checked],
        "lines": outcome.lines,
        "gave_up": outcome.gave_up,
        "uses": outcome.uses,
        "comments": [[*comment] for comment in outcome.comments],
        "digest": outcome.digest,
        "consulted": outcome.consulted,
    }


def from_json(data: Mapping[str, Any]) -> Outcome:
    """Back from the cache; raises KeyError, TypeError or ValueError on anything else."""
    return Outcome(
        findings=[finding_from_json(item) for item in data["findings"]],
        not_checked=[NotChecked(str(what), str(why)) for what, why in data["not_checked"]],
        lines=int(data["lines"]),
        gave_up=int(data["gave_up"]),
        uses=[Use(str(path), int(line), str(name)) for path, line, name in data["uses"]],
        comments=[
            AllowComment(
                str(path), int(line), int(column), int(end), tuple(map(str, names)), bool(whole), bool(off)
            )
            for path, line, column, end, names, whole, off in data["comments"]
        ],
        digest=str(data["digest"]),
        consulted={str(path): str(digest) for path, digest in data["consulted"].items()},
    )
