"""`x = 1  # tensafe: allow lost-write` to `x = 1`, or to a comment with fewer names."""

from __future__ import annotations

from tensafe.findings import Disallow
from tensafe.findings.allow import permission, without
from tensafe.fixes.edits import Edit, Refusal
from tensafe.fixes.source import Source


def edits(action: Disallow, source: Source) -> list[Edit]:
    """The edit, or `Refusal`."""
    span = source.site_span(action.site)
    if span is None or permission(source.text[slice(*span)]) is None:
        raise Refusal("the file changed since")
    start, end = span
    left = without(source.text[start:end], action.names)
    if left:
        return [Edit(start, end, left)]
    line = source.text.rfind("\n", 0, start) + 1
    if source.text[end : end + 1] == "#":  # another comment follows
        return [Edit(start, end, "")]
    before = source.text[line:start]
    if not before.strip():
        after = source.text.find("\n", end)
        return [Edit(line, len(source.text) if after < 0 else after + 1, "")]
    return [Edit(line + len(before.rstrip()), end, "")]
