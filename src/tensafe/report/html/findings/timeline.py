"""The places of a finding in the order of time, where its rule states that."""

from __future__ import annotations

from tensafe.findings import Finding
from tensafe.report.excerpt import Place
from tensafe.report.html.elements import Html, element
from tensafe.report.html.findings.source import MOST_PLACES, Setting, code_at, where
from tensafe.report.html.findings.words import words
from tensafe.report.html.wording import shortened

MOST_CODE = 60


def in_time(finding: Finding) -> list[Place]:
    """What came before, the place itself, and what came after; nothing when that is not known of each."""
    because = finding.because[: MOST_PLACES - 1]
    if not because or not all(item.when for item in because):
        return []
    before = [Place(item.site, item.role) for item in because if item.when == "before"]
    after = [Place(item.site, item.role) for item in because if item.when == "after"]
    return [*before, Place(finding.at, finding.label, primary=True), *after]


def timeline(finding: Finding, setting: Setting) -> Html:
    """A list with an arrow from each place to the next."""
    steps = [_step(place, finding, setting) for place in in_time(finding)]
    if not steps:
        return Html("")
    return element("ol", *steps, class_="f-time", aria_label="In the order of time")


def _step(place: Place, finding: Finding, setting: Setting) -> Html:
    """A place in the finding's own file by its line alone."""
    here = place.site.path == finding.at.path
    location = f"line {place.site.line}" if here else where(place.site, setting, column=False)
    code = code_at(place.site, setting, MOST_CODE)
    said = shortened(place.label, setting.allowance) or "here"
    return element(
        "li",
        element("span", words(said), class_="f-what"),
        element("span", code, class_="f-code") if code else "",
        element("bdi", location, class_="f-faint"),
        class_="f-at" if place.primary else None,
    )
