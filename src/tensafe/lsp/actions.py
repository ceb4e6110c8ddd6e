"""What the client offers at a finding: its fix, safe or unsafe, and the comment that allows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lsprotocol import types

from tensafe.checking.allowing import allow_here
from tensafe.findings import Finding
from tensafe.fixes import planned, until_still
from tensafe.lsp.diagnostics import diagnostic
from tensafe.lsp.looking import Looked
from tensafe.lsp.positions import overlap

FIX_ALL = "source.fixAll.tensafe"


def actions(
    looked: Looked, uri: str, range_: types.Range, only: Sequence[str] | None
) -> list[types.CodeAction]:
    """The actions for the findings in a range; all safe fixes at once where the client asks for that."""
    found: list[types.CodeAction] = []
    if only is None or _asks(types.CodeActionKind.QuickFix.value, only):
        near = [item for item in looked.findings if overlap(looked.positions.range_of(item.at), range_)]
        found += _fixes(looked, uri, near)
        found += [_allow(looked, uri, finding) for finding in near]
    if only is not None and _asks(FIX_ALL, only):
        found += _fix_all(looked, uri)
    return found


def _asks(kind: str, only: Sequence[str]) -> bool:
    """`source.fixAll` asks for `source.fixAll.tensafe`, too."""
    return any(kind == wanted or kind.startswith(f"{wanted}.") for wanted in only)


def _fixes(looked: Looked, uri: str, findings: Sequence[Finding]) -> Iterator[types.CodeAction]:
    for plan in planned(looked.text, _fixed_here(looked, findings)):
        fix = plan.finding.fix
        assert fix is not None
        edits = [
            types.TextEdit(looked.positions.range_between(edit.start, edit.end), edit.text)
            for edit in plan.edits
        ]
        title = f"tensafe: {fix.title or f'fix {plan.finding.name}'}{'' if fix.safe else ' (unsafe)'}"
        yield _action(title, uri, edits, plan.finding, looked, preferred=fix.safe)


def _fixed_here(looked: Looked, findings: Iterable[Finding]) -> list[Finding]:
    """Those whose fix changes this document, and not the file of a helper."""
    return [item for item in findings if item.fix and item.fix.action.site.path == looked.path]


def _allow(looked: Looked, uri: str, finding: Finding) -> types.CodeAction:
    offset, text = allow_here(looked.text, finding)
    edit = types.TextEdit(looked.positions.range_between(offset, offset), text)
    return _action(f"tensafe: allow {finding.name} here", uri, [edit], finding, looked, preferred=False)


def _action(
    title: str,
    uri: str,
    edits: Sequence[types.TextEdit],
    finding: Finding,
    looked: Looked,
    preferred: bool,
) -> types.CodeAction:
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic(finding, looked)],
        is_preferred=preferred,
        edit=types.WorkspaceEdit(changes={uri: edits}),
    )


def _fix_all(looked: Looked, uri: str) -> Iterator[types.CodeAction]:
    result = until_still(
        looked.text,
        _fixed_here(looked, looked.findings),
        lambda text: _fixed_here(looked, looked.again(text)),
        unsafe=False,
    )
    if result.text != looked.text:
        edit = types.TextEdit(looked.positions.whole(), result.text)
        yield types.CodeAction(
            title="tensafe: apply all safe fixes",
            kind=types.CodeActionKind(FIX_ALL) if FIX_ALL in _KINDS else FIX_ALL,
            edit=types.WorkspaceEdit(changes={uri: [edit]}),
        )


_KINDS = {kind.value for kind in types.CodeActionKind}
