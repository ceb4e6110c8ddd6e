"""One finding: a line that opens, and in it everything that the record says."""

from __future__ import annotations

from collections.abc import Sequence

from tensafe.findings import Finding
from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.findings.difference import difference
from tensafe.report.html.findings.picture import picture
from tensafe.report.html.findings.source import Setting, brief, places_of, source, where
from tensafe.report.html.findings.timeline import timeline
from tensafe.report.html.findings.words import words
from tensafe.report.html.wording import size
from tensafe.report.text import Change


def heading(finding: Finding, setting: Setting, level: str) -> list[Html]:
    """Severity, rule, message, and where."""
    rule = f"{finding.code} {finding.name}"
    kind = element("span", finding.severity.value, class_=f"f-severity f-{finding.severity.value}")
    title = element(level, kind, " ", element("span", rule, class_="f-rule"), " ", _message(finding, setting))
    return [title, element("span", *_about(finding, setting), class_="f-about")]


def body(finding: Finding, changes: Sequence[Change], setting: Setting) -> Html:
    """Source, order of time, memory, fix and help."""
    parts = [
        source(finding, setting),
        _part("In time", timeline(finding, setting)),
        _part("In memory", picture(finding.memory)),
        difference(finding.fix, changes, setting),
        _help(finding, setting),
    ]
    return join(parts)


def short_body(finding: Finding, setting: Setting) -> Html:
    """What stands in a long page until the script puts the whole there: the places and the help."""
    return join([brief(places_of(finding), setting), _help(finding, setting)])


def who(finding: Finding) -> list[str]:
    """Who saw it, where that was not the program's first process alone."""
    if finding.processes:
        return list(finding.processes)
    return [f"rank {finding.rank}"] if finding.rank is not None else []


def stored(finding: Finding) -> int:
    """The bytes of all storages that its tensors lie in, as far as the record knows of them."""
    return sum(memory.nbytes for memory in finding.memory)


def _message(finding: Finding, setting: Setting) -> Html:
    return element("span", words(finding.message, setting.allowance), class_="f-message")


def _about(finding: Finding, setting: Setting) -> list[str]:
    function = f" in {finding.at.function}" if finding.at.function else ""
    times = f" · seen {finding.count:,} times" if finding.count > 1 else ""
    seen = who(finding)
    by = f"{' ' if times else ' · seen '}by {', '.join(seen)}" if seen else ""
    memory = f" · {size(stored(finding))} of memory" if stored(finding) else ""
    return [element("bdi", where(finding.at, setting), class_="f-code"), function, times, by, memory]


def _part(title: str, content: Html) -> Html:
    if not content:
        return content
    return join([element("p", title, class_="f-title"), content])


def _help(finding: Finding, setting: Setting) -> Html:
    page = element("code", f"tensafe explain {finding.name}")
    more = element("span", page, class_="f-faint f-page")
    said = join([words(finding.help, setting.allowance), " "]) if finding.help else ""
    return element("p", element("b", "Help: ") if said else "", said, more, class_="f-help")
