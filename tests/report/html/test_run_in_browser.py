"""The page of a run in headless Chromium: what it shows, filters, keyboard, hostile texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from report.html import run_samples
from report.html.opened import Opened
from tensafe.findings import Record, Severity
from tensafe.report.html import run_page

CARDS = """
return [...document.querySelectorAll("#list > .finding")].filter((card) => !card.hidden).map((card) => ({
  rule: card.querySelector(".f-rule").textContent,
  severity: card.querySelector(".f-severity").textContent,
  message: card.querySelector(".f-message").textContent,
  open: card.open,
}))
"""
SOURCE = """
const card = document.getElementById(arguments[0]);
return [...card.querySelectorAll(".f-source tr")].map((row) => ({
  number: row.cells[0].textContent,
  text: row.cells[1].firstChild ? row.cells[1].textContent.split("\\n")[0] : "",
  primary: [...row.querySelectorAll("mark:not(.f-other)")].map((mark) => mark.textContent).join(""),
  other: [...row.querySelectorAll("mark.f-other")].map((mark) => mark.textContent).join(""),
  said: [...row.querySelectorAll("b, em")].map((words) => words.textContent.trim()),
  left: row.querySelector("mark")?.getBoundingClientRect().left ?? 0,
}))
"""
BARS = """
return [...document.getElementById(arguments[0]).querySelectorAll(".f-memory tr")].map((row) => {
  const bar = row.querySelector("svg").getBoundingClientRect();
  return {
    name: row.cells[0].textContent,
    words: row.cells[2].textContent,
    width: bar.width,
    pieces: [...row.querySelectorAll("rect")].map((piece) => {
      const place = piece.getBBox();
      return [place.x / bar.width, (place.x + place.width) / bar.width];
    }),
  };
})
"""

OPEN = "const card = document.getElementById(arguments[0]); card.hidden = false; card.open = true"
"""What lies behind an element, all layers painted, and its ink upon that."""


def cards(opened: Opened) -> list[dict[str, Any]]:
    return list(opened.run(CARDS))


def show(opened: Opened, folder: Path, record: Record | None = None, **how: Any) -> Record:
    record = record or run_samples.record(folder)
    opened.open(run_page(record, run_samples.view(folder, record)), **how)
    return record


def focused(opened: Opened) -> str:
    return str(
        opened.run("return document.activeElement.closest('.finding')?.id ?? document.activeElement.id")
    )


def test_findings_are_those_of_the_record_the_worst_first(opened: Opened, tmp_path: Path) -> None:
    record = show(opened, tmp_path)
    opened.set("is-notice", True)
    shown = [(card["severity"], card["rule"], card["message"]) for card in cards(opened)]
    told = [
        (finding.severity.value, f"{finding.code} {finding.name}", finding.message.replace("`", ""))
        for severity in Severity
        for finding in record.findings
        if finding.severity is severity
    ]
    assert shown == told
    assert opened.run("return document.querySelector('.total.error .figure').textContent") == "2"


def test_both_places_are_marked_in_their_lines(opened: Opened, tmp_path: Path) -> None:
    show(opened, tmp_path)
    rows = {row["number"]: row for row in opened.run(SOURCE, "f1")}
    lines = run_samples.SOURCE.splitlines()
    for number, row in rows.items():
        if number.isdecimal():
            assert row["text"].rstrip() == lines[int(number) - 1]
    assert rows["7"]["primary"] == "first += bias"
    assert rows["4"]["other"] == "torch.sigmoid(x)"
    assert rows["12"]["other"] == "loss.backward()"
    assert rows["7"]["said"] == ["↑ changed in place here"]
    assert rows["4"]["said"] == ["↑ saved here for SigmoidBackward0"]


def test_time_runs_from_saved_to_written_to_needed(opened: Opened, tmp_path: Path) -> None:
    show(opened, tmp_path)
    script = (
        "return [...document.querySelectorAll('#f1 .f-time li')].map((item) => item.innerText.split('\\n'))"
    )
    assert opened.run(script) == [
        ["saved here for SigmoidBackward0", "torch.sigmoid(x)", "line 4"],
        ["changed in place here", "first += bias", "line 7"],
        ["backward needs it here", "loss.backward()", "line 12"],
    ]
    boxes = (
        "[...document.querySelectorAll('#f1 .f-time li')].map((item) => item.getBoundingClientRect().left)"
    )
    lefts = opened.run(f"return {boxes}")
    assert lefts == sorted(lefts)


def test_memory_is_drawn_to_scale(opened: Opened, tmp_path: Path) -> None:
    record = show(opened, tmp_path)
    storage, saved, written = opened.run(BARS, "f1")
    assert storage["words"] == "128 B on cpu"
    assert saved["pieces"] == [[0, pytest.approx(1)]]
    assert written["pieces"] == [[pytest.approx(0.25), pytest.approx(0.5)]]
    assert written["name"] == "written by Tensor.add_ first"
    assert "float32 [2, 4] bytes 32 to 64" in written["words"]
    memory = record.findings[2].memory[0]
    whole, tiny = opened.run(BARS, "f3")
    extent = memory.tensors[0].extent
    assert tiny["pieces"] == [[pytest.approx(extent.start / memory.nbytes), pytest.approx(1)]]
    assert whole["width"] == pytest.approx(storage["width"])


def test_filters_narrow_and_the_count_is_told(opened: Opened, tmp_path: Path) -> None:
    show(opened, tmp_path)
    assert opened.count() == "3 of 5 findings"
    assert opened.run("return document.getElementById('count').getAttribute('aria-live')") == "polite"
    opened.set("is-error", False)
    assert [card["severity"] for card in cards(opened)] == ["warning"]
    opened.set("is-error", True)
    opened.set("is-notice", True)
    assert opened.count() == "5 findings"
    for control, words, rules in (
        ("rule", "TS205 graph-cut", ["TS205", "TS205"]),
        ("file", "helpers.py", ["TS303"]),
        ("who", "rank 1", ["TS106", "TS303"]),
        ("who", "main process", ["TS201", "TS205", "TS205"]),
    ):
        script = (
            "return [...document.getElementById(arguments[0]).options].map((one) => [one.text, one.value])"
        )
        values = {text.partition(" (")[0]: value for text, value in opened.run(script, control)}
        opened.set(control, values[words])
        assert [card["rule"][:5] for card in cards(opened)] == rules
        opened.set(control, "")
    opened.set("query", "sigmoidBACKWARD0")
    assert [card["rule"][:5] for card in cards(opened)] == ["TS201"]
    opened.set("query", "FIRST +=")
    assert [card["rule"][:5] for card in cards(opened)] == ["TS201", "TS106"]
    opened.set("query", "no such thing")
    assert cards(opened) == []
    assert opened.run("return !document.getElementById('none').hidden")


def test_one_rank_of_many_is_not_taken_for_another(opened: Opened, tmp_path: Path) -> None:
    one = run_samples.saved_modified(str(tmp_path / "train.py"))
    found = tuple(replace(one, message=f"message {rank}", rank=rank) for rank in range(12))
    show(opened, tmp_path, Record("run", found))
    script = "return [...document.getElementById('who').options].map((one) => [one.text, one.value])"
    options = opened.run(script)[1:]
    assert [text for text, _ in options] == [f"rank {rank} (1)" for rank in range(12)]
    for rank, (_, value) in enumerate(options):
        opened.set("who", value)
        assert [card["message"] for card in cards(opened)] == [f"message {rank}"]


def test_the_keyboard_goes_through_what_is_shown(opened: Opened, tmp_path: Path) -> None:
    show(opened, tmp_path)
    opened.press("j")
    assert focused(opened) == "f1"
    opened.press("j", Keys.ARROW_DOWN)
    assert focused(opened) == "f3"
    opened.press("j")
    assert focused(opened) == "f3", "the notices after it are not shown"
    opened.press("k", Keys.ARROW_UP)
    assert focused(opened) == "f1"
    was = cards(opened)[0]["open"]
    opened.press(Keys.ENTER)
    assert cards(opened)[0]["open"] is not was
    opened.press(Keys.END)
    assert focused(opened) == "f3"
    opened.press("/")
    assert focused(opened) == "query"
    opened.press("j", "j")
    assert opened.run("return document.getElementById('query').value") == "jj"
    opened.press(Keys.ESCAPE)
    assert opened.run("return document.getElementById('query').value") == ""
    assert focused(opened) == "f1"


def test_all_can_be_opened_and_closed(opened: Opened, tmp_path: Path) -> None:
    show(opened, tmp_path)
    for button, state in (("close", False), ("open", True)):
        opened.run("document.getElementById(arguments[0]).click()", button)
        assert {card["open"] for card in cards(opened)} == {state}


def test_a_reader_that_sees_nothing_finds_its_way(opened: Opened, tmp_path: Path) -> None:
    show(opened, tmp_path)
    outline = opened.run("return [...document.querySelectorAll('h1, h2, h3')].map((node) => node.tagName)")
    assert outline == ["H1", "H2", *["H3"] * 5, "H2", "H2", "H2"]
    script = (
        "return [...document.querySelectorAll('section')].map((one) => one.getAttribute('aria-labelledby'))"
    )
    for label in opened.run(script):
        assert opened.run("return document.getElementById(arguments[0]).textContent", label)
    nameless = opened.run(
        "return [...document.querySelectorAll('input, select, button')].filter("
        "(node) => !node.labels?.length && !node.getAttribute('aria-label') && !node.textContent).length"
    )
    assert nameless == 0
    opened.press(Keys.TAB)
    assert opened.run("return document.activeElement.hash") == "#findings"


def test_copies_and_what_was_not_checked_stand_below(opened: Opened, tmp_path: Path) -> None:
    show(opened, tmp_path)
    script = (
        "return [...document.querySelectorAll('.copies tbody tr')].map((row) => row.innerText.split('\\t'))"
    )
    rows = opened.run(script)
    assert [row[0] for row in rows] == ["4.0 KiB", "2.0 KiB"]
    assert "helpers.py:2:12 batch[:1]" in rows[0][-1]
    assert opened.run("return document.querySelector('.unchecked').innerText").split("\n") == [
        "torch.compile",
        "what runs inside is not seen",
    ]


def test_hostile_texts_are_text(opened: Opened, tmp_path: Path) -> None:
    show(opened, tmp_path, run_samples.hostile(tmp_path))
    opened.set("is-notice", True)
    opened.run("document.getElementById('open').click()")
    assert run_samples.EVIL in opened.run("return document.body.innerText")
    assert opened.run("return document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert opened.run("return document.scripts.length") == 1
    opened.set("query", "onerror")
    assert opened.run("return window.broken === undefined")
    assert opened.complaints() == []
    assert opened.requests() == []


def test_hostile_texts_are_text_when_they_are_unpacked(opened: Opened, tmp_path: Path) -> None:
    few = run_samples.hostile(tmp_path)
    found = tuple(replace(one, count=number) for number in range(1, 60) for one in few.findings)
    show(opened, tmp_path, replace(few, findings=found))
    for number in (501, 640, len(found)):
        opened.run(OPEN, f"f{number}")
        WebDriverWait(opened.driver, 20).until(lambda _: opened.run(BARS, f"f{number}"))  # noqa: B023
        assert run_samples.EVIL in opened.run(
            "return document.getElementById(arguments[0]).textContent", f"f{number}"
        )
    assert opened.run("return document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert opened.run("return window.broken === undefined")
    assert opened.complaints() == []
    assert opened.requests() == []


def test_nothing_is_asked_for_and_nothing_complained_of(opened: Opened, tmp_path: Path) -> None:
    for record in (run_samples.record(tmp_path), run_samples.many(tmp_path, 620), Record("check")):
        show(opened, tmp_path, record)
        if record.findings:
            opened.set("query", "a")
            opened.run("document.getElementById('open').click()")
        assert opened.requests() == []
        assert opened.complaints() == []


def test_a_later_finding_of_a_long_page_is_whole_once_it_is_opened(opened: Opened, tmp_path: Path) -> None:
    record = show(opened, tmp_path, run_samples.many(tmp_path, 700))
    ordered = sorted(record.findings, key=lambda finding: list(Severity).index(finding.severity))
    for number in (501, 600, 601, 700):
        opened.run(OPEN, f"f{number}")
        WebDriverWait(opened.driver, 20).until(lambda _: opened.run(BARS, f"f{number}"))  # noqa: B023
        extent = ordered[number - 1].memory[0].tensors[1].extent
        assert f"bytes {extent.start:,} to {extent.stop:,}" in opened.run(BARS, f"f{number}")[2]["words"]
        (row,) = [row for row in opened.run(SOURCE, f"f{number}") if row["primary"]]
        assert row["number"] == str(ordered[number - 1].at.line)
    assert opened.complaints() == []


def test_ten_thousand_findings_are_all_there(opened: Opened, tmp_path: Path) -> None:
    record = show(opened, tmp_path, run_samples.many(tmp_path, 10_000))
    loud = sum(finding.severity is not Severity.NOTICE for finding in record.findings)
    assert opened.count() == f"{loud:,} of 10,000 findings"
    opened.set("query", "hidden_9999 ")
    opened.set("is-notice", True)
    assert [card["message"].split()[2] for card in cards(opened)] == ["hidden_9999"]
    assert opened.complaints() == []


def test_without_a_script_everything_can_be_read(opened: Opened, tmp_path: Path) -> None:
    show(opened, tmp_path, script=False)
    assert len(opened.driver.find_elements("css selector", "#list > .finding")) == 5
    assert not opened.driver.find_element("id", "filters").is_displayed()
    first = opened.driver.find_element("id", "f1").text
    for words in ("first += bias", "changed in place here", "bytes 32 to 64", "line 12"):
        assert words in first
    assert opened.complaints() == []


def test_print_holds_what_is_shown(opened: Opened, tmp_path: Path) -> None:
    record = run_samples.many(tmp_path, 30)
    show(opened, tmp_path, record)
    assert not any(card["open"] for card in cards(opened))
    opened.run("dispatchEvent(new Event('beforeprint'))")
    assert all(card["open"] for card in cards(opened))
    opened.run("dispatchEvent(new Event('afterprint'))")
    assert not any(card["open"] for card in cards(opened))
