"""The controls over the list of findings, hidden until the script is there to serve them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tensafe.findings import Finding, Severity
from tensafe.findings.cells import split_cell
from tensafe.report.html.elements import Html, element, join, void
from tensafe.report.html.findings.card import stored, who
from tensafe.report.html.wording import shortened
from tensafe.report.places import shown_path

MOST_CHARACTERS = 90
FIRST = "main process"
"""Who saw a finding that names nobody."""
ORDERS = (("severity", "severity"), ("file", "file and line"), ("rule", "rule"), ("bytes", "bytes of memory"))


class Kinds:
    """The values that can be chosen, each by a number, in the order of the lists."""

    def __init__(self, findings: Sequence[Finding], root: str) -> None:
        self._root = root
        self.rules = _counted(f"{finding.code} {finding.name}" for finding in findings)
        self.files = _counted(self.file(finding) for finding in findings)
        self.processes = _counted(name for finding in findings for name in processes(finding))
        self.severities = Counter(finding.severity for finding in findings)
        self.orders = ORDERS[: None if any(map(stored, findings)) else -1]
        self._numbers = [
            {name: number for number, name in enumerate(names)}
            for names in (self.rules, self.files, self.processes)
        ]

    def file(self, finding: Finding) -> str:
        return shown_path(split_cell(finding.at.path)[0], self._root)

    def marks(self, finding: Finding) -> dict[str, str]:
        """The attributes by which the script knows what a finding is."""
        rules, files, names = self._numbers
        seen = " ".join(str(names[name]) for name in processes(finding))
        nbytes = stored(finding)
        return {
            "data_severity": finding.severity.value,
            "data_rule": str(rules[f"{finding.code} {finding.name}"]),
            "data_file": str(files[self.file(finding)]),
            "data_line": str(finding.at.line),
            "data_who": seen,
            **({"data_bytes": str(nbytes)} if nbytes else {}),
        }


def processes(finding: Finding) -> list[str]:
    return who(finding) or [FIRST]


def _counted(names: Iterable[str]) -> Mapping[str, int]:
    counts = Counter(names)
    return {name: counts[name] for name in sorted(counts, key=_by_number)}


def _by_number(name: str) -> list[tuple[bool, int, str]]:
    """Numbers by their value, so that rank 2 comes before rank 10."""
    parts = re.split(r"([0-9]{1,9})", name)
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def filters(kinds: Kinds, notices: bool) -> Html:
    """Search, severities, and a list for each kind of which there are two or more."""
    boxes = [_box(severity, kinds, notices) for severity in Severity if severity in kinds.severities]
    form = element(
        "form",
        void(
            "input",
            type="search",
            id="query",
            placeholder="Search findings and source",
            autocomplete="off",
            spellcheck="false",
            aria_label="Search findings and source",
            aria_keyshortcuts="/",
        ),
        element("span", *boxes, class_="boxes", role="group", aria_label="Severity"),
        _choice("rule", "Rule", "all rules", kinds.rules),
        _choice("file", "File", "all files", kinds.files),
        _choice("who", "Seen by", "all processes", kinds.processes),
        _order(kinds),
        class_="controls",
        role="search",
        aria_label="Which findings are shown, and in which order",
    )
    return element("div", form, _status(), id="filters", hidden=True)


def _box(severity: Severity, kinds: Kinds, notices: bool) -> Html:
    name = severity.value
    shown = notices or severity is not Severity.NOTICE
    box = void("input", type="checkbox", id=f"is-{name}", value=name, checked=shown)
    return element(
        "label", box, f" {name} ", element("span", f"{kinds.severities[severity]:,}", class_="number")
    )


def _choice(name: str, label: str, every: str, names: Mapping[str, int]) -> Html:
    if len(names) < 2:
        return Html("")
    options = [element("option", every, value="")]
    options += [
        element("option", f"{shortened(one, MOST_CHARACTERS)} ({times:,})", value=number)
        for number, (one, times) in enumerate(names.items())
    ]
    return element("label", label, " ", element("select", *options, id=name))


def _order(kinds: Kinds) -> Html:
    """In which order; that of the page is the one by severity."""
    options = [element("option", words, value=name) for name, words in kinds.orders]
    return element("label", "Sort by ", element("select", *options, id="order"))


def _status() -> Html:
    count = element("output", id="count", role="status", aria_live="polite")
    switch = element(
        "label",
        void("input", type="checkbox", id="keys", checked=True, autocomplete="off"),
        " single-key shortcuts",
    )
    letters = element(
        "span", join([_key("j"), " ", _key("k"), " next, previous · ", _key("/"), " search · "]), id="letters"
    )
    help_ = element(
        "span",
        switch,
        " ",
        element("span", letters, _key("Enter"), " open · ", _key("Esc"), " clear"),
        class_="keys",
    )
    buttons = [
        element("button", "Open all", type="button", id="open"),
        element("button", "Close all", type="button", id="close"),
    ]
    return element("p", count, *buttons, help_, class_="status faint")


def _key(name: str) -> Html:
    return element("kbd", name)
