"""The report of a run or a check as one page: every finding in full, with or without a script."""

from __future__ import annotations

from collections.abc import Sequence

from tensafe.findings import Finding, Record, Severity
from tensafe.findings.cells import split_cell
from tensafe.report.html.document import document
from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.findings.bodies import packed
from tensafe.report.html.findings.card import body, heading, short_body
from tensafe.report.html.findings.filters import Kinds, filters
from tensafe.report.html.findings.source import Setting
from tensafe.report.html.findings.tables import copies, not_checked, summary
from tensafe.report.html.wording import count, shortened, size
from tensafe.report.places import shown_path
from tensafe.report.text import View

TITLE_CHARACTERS = 120
TEXT_CHARACTERS = 4_000_000
"""What the messages of a page may take together; beyond, the long ones lose their middle."""
LONGEST, SHORTEST = 2_000, 120
FEW, SOME, IN_FULL = 20, 200, 500
"""So many findings start open; so many have more lines of source around each place; so many stand there in
full without a script.
"""
MEANINGS = {
    Severity.ERROR: ("Errors", "Certainly wrong."),
    Severity.WARNING: ("Warnings", "Very probably wrong."),
    Severity.NOTICE: ("Notices", "True, and often meant."),
}
STYLES = ("page.css", "findings.css", "run.css")


def run_page(record: Record, view: View) -> str:
    """A self-contained page, as UTF-8 text: it makes no request, and escapes every text.

    It holds all findings, notices too; the script shows those that are asked for. Without one, those after
    the first `IN_FULL` have their places and help.
    """
    found = sorted(record.findings, key=lambda finding: list(Severity).index(finding.severity))
    setting = _setting(len(found), view)
    lead, title = _title(record, view)
    kinds = Kinds(found, view.root)
    main = element(
        "main",
        _head(lead, title, record, view.root),
        _findings(found, kinds, view, setting),
        copies(record.copies, setting),
        not_checked(record.not_checked, setting),
        summary(record, setting),
        class_="tensafe run",
    )
    skip = element("a", "Skip to the findings", href="#findings", class_="skip")
    return document(f"{title} · tensafe", join([skip, main]), None, "findings.js", styles=STYLES)


def _setting(number: int, view: View) -> Setting:
    allowance = min(LONGEST, max(SHORTEST, TEXT_CHARACTERS // max(1, number * 4)))
    return Setting(view.sources, view.root, 2 if number <= FEW else 1 if number <= SOME else 0, allowance)


def _title(record: Record, view: View) -> tuple[str, str]:
    if record.engine != "run":
        files = record.summary.get("files")
        return "Check of ", count(files, "file") if isinstance(files, int) else "source"
    program = str(record.summary.get("program", "")) or "a program"
    return "Run of ", shortened(shown_path(program, view.root), TITLE_CHARACTERS)


def _head(lead: str, title: str, record: Record, root: str) -> Html:
    name = element("h1", element("span", lead, class_="faint"), element("bdi", title))
    theme = element("button", "Theme", type="button", id="theme", hidden=True)
    figures = [
        _figure(severity.value, *MEANINGS[severity], f"{_number(record, severity):,}")
        for severity in Severity
    ]
    paths = {split_cell(finding.at.path)[0] for finding in record.findings}
    figures.append(_figure("files", "Files", "With findings.", f"{len(paths):,}"))
    unseen = len(record.not_checked)
    figures.append(_figure("unseen", "Not checked", "Said below, with the reason.", f"{unseen:,}"))
    if record.copies is not None:
        nbytes = sum(row.nbytes for row in record.copies)
        figures.append(_figure("copied", "Copied", "By all lines together.", size(nbytes)))
    top = element("div", name, theme, class_="title")
    return element("header", top, element("dl", *figures, class_="totals"), class_="top")


def _figure(key: str, label: str, meaning: str, value: str) -> Html:
    return element(
        "div",
        element("dt", label),
        element("dd", value, class_="figure"),
        element("dd", meaning, class_="meaning"),
        class_=f"total {key}",
    )


def _number(record: Record, severity: Severity) -> int:
    return sum(finding.severity is severity for finding in record.findings)


def _findings(found: Sequence[Finding], kinds: Kinds, view: View, setting: Setting) -> Html:
    title = element("h2", "Findings", id="findings-title")
    few = len(found) <= FEW
    cards = [_card(number, finding, kinds, view, setting, few) for number, finding in enumerate(found, 1)]
    empty = element("p", "Nothing found.", class_="nothing") if not found else ""
    none = element("p", "No finding fits.", class_="nothing", id="none", hidden=True)
    bar = filters(kinds, view.notices) if found else ""
    bodies = [body(one, view.changes.get(one, ()), setting) for one in found[IN_FULL:]]
    listed = join([element("div", *cards, id="list", data_full=IN_FULL), *packed(bodies)])
    return element(
        "section", title, bar, empty, listed, none, id="findings", aria_labelledby="findings-title"
    )


def _card(number: int, finding: Finding, kinds: Kinds, view: View, setting: Setting, opened: bool) -> Html:
    head = element("summary", *heading(finding, setting, "h3"))
    later = number > IN_FULL
    content = short_body(finding, setting) if later else body(finding, view.changes.get(finding, ()), setting)
    inside = element("div", content, class_="inside")
    marks = kinds.marks(finding)
    kind = f"finding {marks['data_severity']}"
    return element("details", head, inside, id=f"f{number}", class_=kind, open=opened, **marks)
