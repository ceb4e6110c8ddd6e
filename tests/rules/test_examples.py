"""Every example of every rule, through both engines, as is, allowed, fixed and fixed twice."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rules.harness import ENGINES, Case, Engine, Seen, assert_holds, cases
from tensafe.findings import AssignThroughIndex, Finding, Fix, Severity, Site
from tensafe.rules import Bad, Good
from tensafe.rules._loader import Rule, by_name, catalogue

ALL = list(cases(catalogue()))


@pytest.mark.parametrize("case", ALL, ids=str)
def test_example(case: Case, tmp_path: Path) -> None:
    if case.engine == "run" or case.form == "fixed":
        pytest.importorskip("torch")
    assert_holds(case, tmp_path)


# A toy engine and a toy rule show that the harness can fail.

GUILTY = "x[m].zero_()"
TOY = replace(
    by_name("lost-write"),
    setup="import torch\n",
    examples=(
        Bad(f"{GUILTY}  # finds TS106", fixed=(GUILTY, "x[m] = 0")),
        Good("x[m] = 0", because="it is an assignment"),
    ),
)


def toy(text: str, path: str, rules: Sequence[Rule], rewrites: bool = True) -> Seen:
    """Reports each guilty line that is not allowed."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if GUILTY in line and "tensafe: allow" not in line:
            site = Site(path, number, line.index(GUILTY) + 1, number, line.index(GUILTY) + 1 + len(GUILTY))
            fix = Fix(AssignThroughIndex(site), safe=True) if rewrites else None
            found.append(Finding("TS106", "lost", site, name="lost-write", severity=Severity.ERROR, fix=fix))
    return Seen(tuple(found))


def engines(broken: Engine) -> dict[str, Engine]:
    return dict.fromkeys(ENGINES, broken)


def assert_fails(
    form: str, broken: Engine, rule: Rule = TOY, label: str = "bad1", engine: str = "check"
) -> None:
    case = next(c for c in cases([rule]) if (c.label, c.form, c.engine) == (label, form, engine))
    with tempfile.TemporaryDirectory() as folder, pytest.raises(AssertionError):
        assert_holds(case, Path(folder), engines(broken))


@pytest.mark.parametrize("case", list(cases([TOY])), ids=str)
def test_the_toy_rule_passes(case: Case, tmp_path: Path) -> None:
    assert_holds(case, tmp_path, engines(toy))


def test_a_rule_that_finds_nothing_fails() -> None:
    assert_fails("as-is", lambda text, path, rules: Seen(()))


def test_a_rule_that_finds_the_wrong_line_fails() -> None:
    def wrong(text: str, path: str, rules: Sequence[Rule]) -> Seen:
        found = toy(text, path, rules).findings
        return Seen(tuple(replace(item, at=replace(item.at, line=1)) for item in found))

    assert_fails("as-is", wrong)


def test_a_rule_that_reports_twice_fails() -> None:
    assert_fails("as-is", lambda *call: Seen(toy(*call).findings * 2))


def test_a_false_alarm_on_a_good_example_fails() -> None:
    alarm = Finding("TS106", "lost", Site("x", 1), severity=Severity.WARNING)
    assert_fails("as-is", lambda *call: Seen((alarm,)), label="good1")


def test_a_program_that_does_not_raise_as_promised_fails() -> None:
    bad = replace(TOY.examples[0], raises=True)  # type: ignore[arg-type]
    assert_fails("as-is", toy, replace(TOY, examples=(bad,)), engine="run")


def test_an_engine_deaf_to_allow_fails() -> None:
    def deaf(text: str, path: str, rules: Sequence[Rule]) -> Seen:
        return toy(text.replace("tensafe: allow", ""), path, rules)

    assert_fails("allowed", deaf)


def test_a_fix_that_does_nothing_fails() -> None:
    assert_fails("fixed", lambda *call: toy(*call, rewrites=False))


def test_a_fix_that_nobody_promised_fails() -> None:
    bad = replace(TOY.examples[0], fixed=())  # type: ignore[arg-type]
    assert_fails("fixed", toy, replace(TOY, examples=(bad,)))


def test_a_fixed_text_that_is_not_silent_fails() -> None:
    def never_content(text: str, path: str, rules: Sequence[Rule]) -> Seen:
        found = toy(text, path, rules)
        return found if found.findings else Seen((Finding("TS106", "still", Site(path, 1)),))

    assert_fails("fixed", never_content)


def test_notices_do_not_count() -> None:
    notice = Finding("TS106", "often meant", Site("x", 1), severity=Severity.NOTICE)
    assert Seen((notice,)).loud() == []


def test_every_rule_is_there_in_every_form() -> None:
    for rule in catalogue():
        names = [str(case) for case in ALL if case.rule is rule]
        assert any(name.endswith("-as-is") for name in names)
        assert any(name.endswith("-allowed") for name in names)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_real_engine_with_a_rule_that_looks_away_fails(engine: str, tmp_path: Path) -> None:
    if engine == "run":
        pytest.importorskip("torch")
    blind = replace(by_name("lost-write"), find=lambda call, history: iter(()))
    case = next(c for c in cases([blind]) if c.engine == engine and c.form == "as-is")
    with pytest.raises(AssertionError, match="nothing found"):
        assert_holds(case, tmp_path)
