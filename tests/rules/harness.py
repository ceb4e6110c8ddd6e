"""The cross-product over a rule's examples: either engine, as is, allowed, fixed, fixed twice."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensafe.findings import Finding, Severity
from tensafe.findings.source import split_lines
from tensafe.fixes import until_still
from tensafe.rules import Bad, Good
from tensafe.rules._loader import Rule

FORMS = ("as-is", "allowed", "fixed", "fixed-twice")


@dataclass(frozen=True)
class Seen:
    """What an engine found in a text, and whether the program stopped with an error."""

    findings: tuple[Finding, ...]
    raised: bool = False

    def loud(self) -> list[tuple[int, str]]:
        """(line, code) of errors and warnings, in the order of the text."""
        loud = [finding for finding in self.findings if finding.severity is not Severity.NOTICE]
        return sorted((finding.at.line, finding.code) for finding in loud)


Engine = Callable[[str, str, Sequence[Rule]], Seen]


def check(text: str, path: str, rules: Sequence[Rule]) -> Seen:
    """The static engine."""
    from tensafe.check import check_text

    return Seen(tuple(check_text(text, path, rules)))


def run(text: str, path: str, rules: Sequence[Rule]) -> Seen:
    """The runtime engine."""
    from tensafe.run import watch_text

    record = watch_text(text, path, rules)
    return Seen(record.findings, bool(record.summary.get("raised")))


ENGINES: dict[str, Engine] = {"run": run, "check": check}


@dataclass(frozen=True)
class Case:
    """One example of one rule in one form, for one engine."""

    rule: Rule
    example: Bad | Good
    label: str  # "bad1"
    engine: str
    form: str

    def __str__(self) -> str:
        return f"{self.rule.code}-{self.rule.name}-{self.label}-{self.engine}-{self.form}"

    @property
    def text(self) -> str:
        return self.rule.setup + self.example.text

    @property
    def expected(self) -> list[tuple[int, str]]:
        if isinstance(self.example, Good):
            return []
        offset = len(split_lines(self.rule.setup))
        return sorted((line + offset, code) for line, code in self.example.expected(self.engine))

    @property
    def promised(self) -> str:
        """The text after the fix; the same text when the example promises none."""
        after = self.example.fixed_text if isinstance(self.example, Bad) else None
        return self.rule.setup + (self.example.text if after is None else after)


def cases(rules: Sequence[Rule]) -> Iterator[Case]:
    """Good examples as they are; bad ones in every form for the engines that must see them."""
    for rule in rules:
        numbers = {Bad: 0, Good: 0}
        for example in rule.examples:
            numbers[type(example)] += 1
            label = f"{type(example).__name__.lower()}{numbers[type(example)]}"
            for engine in ENGINES:
                blind = isinstance(example, Good) or not example.expected(engine)
                for form in FORMS[:1] if blind else FORMS:
                    yield Case(rule, example, label, engine, form)


def assert_holds(case: Case, folder: Path, engines: dict[str, Engine] = ENGINES) -> None:
    """Whether the rule does what its example says, in this form."""
    path = folder / f"{case.label}.py"
    looks = {name: _looking(engine, path, case.rule) for name, engine in engines.items()}
    seen = looks[case.engine](case.text)
    if case.form == "as-is":
        assert seen.loud() == case.expected, _told(seen)
        if case.engine == "run":
            raises = isinstance(case.example, Bad) and case.example.raises
            assert seen.raised == raises, f"raises={raises} is promised"
    elif case.form == "allowed":
        allowed = looks[case.engine](allow(case.text, case.expected, case.rule.name))
        assert allowed.loud() == [], _told(allowed)
    else:
        _assert_fixed(case, seen, looks)


def allow(text: str, places: Sequence[tuple[int, str]], name: str) -> str:
    """The text with every guilty line allowed."""
    lines = text.splitlines()
    for line in {line for line, _ in places}:
        lines[line - 1] += f"  # tensafe: allow {name}"
    return "\n".join(lines) + "\n"


def _assert_fixed(case: Case, seen: Seen, looks: dict[str, Callable[[str], Seen]]) -> None:
    def look(text: str) -> Sequence[Finding]:
        return looks[case.engine](text).findings

    once = until_still(case.text, seen.findings, look, unsafe=True)
    ast.parse(once.text)
    if case.form == "fixed-twice":
        twice = until_still(once.text, look(once.text), look, unsafe=True)
        assert (twice.text, twice.applied) == (once.text, 0), "a second fix changes the text again"
        return
    why = "; ".join(refused.why for refused in once.refused)
    assert once.text == case.promised, why or "the fix gives another text than promised"
    if case.promised != case.text:
        for name, again in looks.items():
            assert again(once.text).loud() == [], f"the fixed text is not silent under {name}"


def _looking(engine: Engine, path: Path, rule: Rule) -> Callable[[str], Seen]:
    def look(text: str) -> Seen:
        path.write_text(text, encoding="utf-8")
        return engine(text, str(path), [rule])

    return look


def _told(seen: Seen) -> str:
    return (
        "; ".join(f"line {finding.at.line}: {finding.message}" for finding in seen.findings)
        or "nothing found"
    )
