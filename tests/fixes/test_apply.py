"""Many fixes on one text: collisions, rounds, refusals, and every other byte in its place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixes.places import finding_with, fixed, site_of
from tensafe.findings import AssignThroughIndex, Finding, OutOfPlace, Wrap
from tensafe.fixes import apply, until_still
from tensafe.fixes.edits import Edit, carried_out, collide, collide_among

NEWLINES = st.sampled_from(["\n", "\r\n"])
COMMENTS = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=("Cs",)), max_size=12)
STATEMENTS = {
    "x += y": "x = x + y",
    "x.mul_(a - b)": "x = x.mul(a - b)",
    "x[m].zero_()": "x[m] = 0",
    "x /= n + 1": "x = x / (n + 1)",
}


@given(st.lists(st.tuples(st.sampled_from(sorted(STATEMENTS)), COMMENTS), min_size=1, max_size=5), NEWLINES)
def test_everything_outside_the_spans_is_untouched(lines: list[tuple[str, str]], newline: str) -> None:
    source = after = f"# é日{newline}"
    findings = []
    for statement, comment in lines:
        start = len(source)
        source += f"if c: {statement}  # {comment}{newline}"
        after += f"if c: {STATEMENTS[statement]}  # {comment}{newline}"
        site = site_of(source, statement, occurrence=source[:start].count(statement))
        action = AssignThroughIndex(site) if "zero_" in statement else OutOfPlace(site)
        findings.append(finding_with(action))
    source, after = source + f"print(x){newline}", after + f"print(x){newline}"
    result = apply(source, findings, unsafe=False)
    assert not result.refused, result.refused[0].why
    assert result.text == after
    assert result.applied == len(lines)


def test_unsafe_fixes_are_asked_for() -> None:
    source = "x += 1\nx\n"
    finding = finding_with(OutOfPlace(site_of(source, "x += 1")), safe=False)
    assert apply(source, [finding], unsafe=False).text == source
    assert apply(source, [finding], unsafe=True).text == "x = x + 1\nx\n"


def test_two_findings_on_one_line_are_one_edit() -> None:
    source = "x += 1\nx\n"
    action = OutOfPlace(site_of(source, "x += 1"))
    result = fixed(source, action, action)
    assert result.text == "x = x + 1\nx\n"
    assert result.applied == 1


def test_of_colliding_fixes_the_first_wins_and_the_next_round_does_the_other() -> None:
    source = "y = f()\n"
    wraps = [finding_with(Wrap(site_of(source, "f()"), template)) for template in ("one({})", "two({})")]
    first = apply(source, wraps, unsafe=False)
    assert (first.text, first.applied) == ("y = one(f())\n", 1)
    rest = [finding_with(Wrap(site_of(first.text, "f()"), "two({})"))]
    result = until_still(source, wraps, lambda text: rest if "two" not in text else [], unsafe=False)
    assert (result.text, result.applied) == ("y = one(two(f()))\n", 2)


def test_a_look_that_always_finds_something_ends() -> None:
    def again(text: str) -> list[Finding]:
        return [finding_with(Wrap(site_of(text, "f()"), "g({})"))]

    result = until_still("y = f()\n", again("y = f()\n"), again, unsafe=False)
    assert result.applied == 10


def test_a_file_that_does_not_parse_is_left_alone() -> None:
    source = "x += 1\n"
    finding = finding_with(OutOfPlace(site_of(source, "x += 1")))
    result = apply("x += (\n", [finding], unsafe=False)
    assert result.text == "x += (\n"
    assert "does not parse" in result.refused[0].why


def test_a_template_that_breaks_the_syntax_is_refused() -> None:
    source = "y = f()\n"
    result = fixed(source, Wrap(site_of(source, "f()"), "(({})"))
    assert result.text == source
    assert "would not parse" in result.refused[0].why


def test_a_finding_without_a_fix_is_nothing_to_do() -> None:
    finding = replace(finding_with(OutOfPlace(site_of("x", "x"))), fix=None)
    assert apply("x\n", [finding], unsafe=True).refused == []


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4), st.text("xyz", max_size=3)), max_size=4))
def test_edits_that_do_not_collide_commute_with_their_order(spans: list[tuple[int, int, str]]) -> None:
    text = "abcdefghijklmnopqrstuvwxyz"
    edits = [Edit(start, start + length, words) for start, length, words in spans]
    if any(collide(a, b) for i, a in enumerate(edits) for b in edits[i + 1 :]):
        return
    expected = text
    for edit in sorted(edits, reverse=True):
        expected = expected[: edit.start] + edit.text + expected[edit.end :]
    assert carried_out(text, edits) == carried_out(text, reversed(edits)) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Edit(0, 2, ""), Edit(2, 4, ""), False),
        (Edit(0, 3, ""), Edit(2, 4, ""), True),
        (Edit(2, 2, "a"), Edit(2, 2, "b"), True),
        (Edit(2, 2, "a"), Edit(2, 4, "b"), True),
        (Edit(1, 1, "a"), Edit(2, 4, "b"), False),
    ],
)
def test_collisions(one: Edit, other: Edit, expected: bool) -> None:
    assert collide(one, other) is collide(other, one) is expected


def test_an_insertion_beside_a_replacement_of_the_same_fix_is_no_collision() -> None:
    assert not collide_among([Edit(0, 2, "a"), Edit(2, 2, "b")])
    assert collide_among([Edit(0, 2, "a"), Edit(1, 1, "b")])
