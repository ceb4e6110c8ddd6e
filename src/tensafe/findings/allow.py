"""The comment `# tensafe: allow NAME, NAME`, which silences a finding on its own lines."""

from __future__ import annotations

import re
from collections.abc import Callable

from tensafe.findings.finding import Finding

_ALLOW = re.compile(
    r"#\s*tensafe:\s*allow\b(?:[\s:]+(?P<names>[A-Za-z][\w-]*(?:\s*,\s*[A-Za-z][\w-]*)*))?", re.I
)


def is_allowed(finding: Finding, read_line: Callable[[str, int], str]) -> bool:
    """Whether a comment on a line of the finding's span, or alone on the line above, allows it.

    Names are rule names or codes; a comment without any allows everything. `read_line(path, line)` gives
    a line of the source, or an empty string when there is none.
    """
    site = finding.at
    if site.line > 1:
        above = read_line(site.path, site.line - 1).strip()
        if above.startswith("#") and _names(finding, above):
            return True
    last = max(site.line, site.end_line)
    return any(_names(finding, read_line(site.path, line)) for line in range(site.line, last + 1))


def _names(finding: Finding, line: str) -> bool:
    comment = _ALLOW.search(line)
    if not comment:
        return False
    if comment["names"] is None:
        return True
    named = {name.strip().lower() for name in comment["names"].split(",")}
    return not named.isdisjoint({finding.name, finding.code.lower()})
