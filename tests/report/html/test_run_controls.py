"""The controls over a run's findings in headless Chromium: their order, the keys, what is printed."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from report.html import run_samples
from report.html.opened import Opened
from report.html.test_run_in_browser import cards, focused, show
from tensafe.findings import Finding, Memory, Record, Severity

ORDERS = "return [...document.getElementById('order').options].map((one) => one.text)"
MESSAGES = "return [...document.querySelectorAll('#list .f-message')].map((one) => one.textContent)"


def scattered(folder: Path) -> Record:
    """Sixteen findings whose rules, files, lines, severities and bytes do not go together."""
    found = [
        replace(
            finding,
            message=f"message {number}",
            code=f"TS10{number * 7 % 3}",
            name=f"rule-{number * 7 % 3}",
            severity=list(Severity)[number * 5 % 3],
            at=replace(
                finding.at, path=str(folder / f"block_{number * 3 % 12}.py"), line=1 + number * 11 % 13
            ),
            memory=(Memory(number * 37 % 8 * 512, finding.memory[0].tensors),) if number % 4 else (),
        )
        for number, finding in enumerate(run_samples.many(folder, 16).findings)
    ]
    return Record("run", tuple(found))


def number_in(path: str) -> int:
    return int(re.findall("[0-9]+", Path(path).name)[0])


KEYS: dict[str, Any] = {
    "severity": lambda one: list(Severity).index(one.severity),
    "file": lambda one: (number_in(one.at.path), one.at.line),
    "rule": lambda one: one.code,
    "bytes": lambda one: -sum(memory.nbytes for memory in one.memory),
}


def expected(found: tuple[Finding, ...], by: str) -> list[str]:
    worst_first = sorted(found, key=KEYS["severity"])
    return [one.message for one in sorted(worst_first, key=KEYS[by])]


def test_each_order_is_that_of_python(opened: Opened, tmp_path: Path) -> None:
    record = show(opened, tmp_path, scattered(tmp_path))
    opened.set("is-notice", True)
    assert opened.run(ORDERS) == ["severity", "file and line", "rule", "bytes of memory"]
    assert len({tuple(expected(record.findings, by)) for by in KEYS}) == 4
    for by in ("bytes", "file", "severity", "rule", "severity"):
        opened.set("order", by)
        assert [card["message"] for card in cards(opened)] == expected(record.findings, by)
        assert opened.count().startswith("16 findings")
    assert opened.count() == "16 findings"
    opened.set("order", "file")
    assert opened.count() == "16 findings, sorted by file and line"
    assert opened.complaints() == []


def test_an_order_holds_under_filters_and_for_the_keys(opened: Opened, tmp_path: Path) -> None:
    record = show(opened, tmp_path, scattered(tmp_path))
    opened.set("order", "bytes")
    loud = tuple(one for one in record.findings if one.severity is not Severity.NOTICE)
    assert [card["message"] for card in cards(opened)] == expected(loud, "bytes")
    opened.set("is-error", False)
    warnings = tuple(one for one in loud if one.severity is Severity.WARNING)
    assert [card["message"] for card in cards(opened)] == expected(warnings, "bytes")
    opened.run("document.activeElement.blur()")
    seen = []
    for _ in warnings:
        opened.press("j")
        seen.append(opened.run("return document.activeElement.querySelector('.f-message').textContent"))
    assert seen == expected(warnings, "bytes")
    opened.press(Keys.HOME)
    assert opened.run("return document.activeElement.textContent").count(seen[0]) == 1


def test_an_order_can_be_chosen_without_a_mouse_and_is_named(opened: Opened, tmp_path: Path) -> None:
    record = show(opened, tmp_path, scattered(tmp_path))
    opened.set("is-notice", True)
    opened.run("document.getElementById('order').focus()")
    opened.press("r")
    assert [card["message"] for card in cards(opened)] == expected(record.findings, "rule")
    assert focused(opened) == "order", "what is sorted takes the focus away from nobody"
    assert opened.run("return document.getElementById('order').labels[0].textContent").startswith("Sort by")
    assert opened.run("return document.getElementById('count').getAttribute('aria-live')") == "polite"


def test_bytes_are_an_order_only_where_something_is_known_of_them(opened: Opened, tmp_path: Path) -> None:
    found = tuple(replace(one, memory=()) for one in scattered(tmp_path).findings)
    show(opened, tmp_path, Record("check", found))
    assert opened.run(ORDERS) == ["severity", "file and line", "rule"]
    assert "of memory" not in opened.run("return document.getElementById('list').textContent")


def test_a_finding_of_a_long_page_has_its_own_body_in_every_order(opened: Opened, tmp_path: Path) -> None:
    show(opened, tmp_path, run_samples.many(tmp_path, 700))
    opened.set("order", "file")
    opened.run("document.getElementById('f640').open = true; document.getElementById('f640').hidden = false")
    wait = "const done = arguments[0], card = document.getElementById('f640');"
    opened.driver.execute_async_script(
        f"{wait} const look = () => card.querySelector('.f-memory') ? done() : setTimeout(look, 20); look()"
    )
    name = opened.run("return document.querySelector('#f640 .f-message').textContent").split()[2]
    line = opened.run("return document.querySelector('#f640 .f-at td').textContent")
    assert int(line) == 3 * (int(name.removeprefix("hidden_")) // 10) + 2


def test_without_a_script_the_worst_stand_first_and_no_order_is_offered(
    opened: Opened, tmp_path: Path
) -> None:
    record = show(opened, tmp_path, scattered(tmp_path), script=False)
    assert opened.run(MESSAGES) == expected(record.findings, "severity")
    assert not opened.driver.find_element("id", "order").is_displayed()


def test_single_keys_can_be_switched_off_and_stay_so(opened: Opened, tmp_path: Path) -> None:
    show(opened, tmp_path)
    opened.press("j")
    assert focused(opened) == "f1"
    opened.run("document.getElementById('keys').click()")
    opened.run("document.activeElement.blur()")
    for key in ("j", "k", "/"):
        opened.press(key)
        assert focused(opened) == ""
    assert opened.run("return document.getElementById('query').getAttribute('aria-keyshortcuts')") is None
    assert not opened.driver.find_element("id", "letters").is_displayed()
    opened.run("document.querySelector('#f1 > summary').focus()")
    opened.press(Keys.ARROW_DOWN)
    assert focused(opened) == "f2", "keys that print nothing go on"
    opened.run("location.hash = '#f3'")
    opened.driver.refresh()
    opened.press("j")
    assert focused(opened) == "f3", "as the address says; no key has moved on"
    opened.run("document.getElementById('keys').click()")
    opened.run("document.activeElement.blur()")
    opened.press("j")
    assert focused(opened) == "f1"


def test_another_page_knows_nothing_of_the_choice(opened: Opened, tmp_path: Path) -> None:
    show(opened, tmp_path)
    opened.run("document.getElementById('keys').click()")
    show(opened, tmp_path)
    opened.press("j")
    assert focused(opened) == "f1"


@pytest.mark.parametrize("control", ["query", "rule", "order", "is-error", "keys"])
def test_no_key_is_taken_from_a_control(opened: Opened, tmp_path: Path, control: str) -> None:
    show(opened, tmp_path)
    opened.run("document.getElementById(arguments[0]).focus()", control)
    for key in ("j", "k", "/"):
        opened.press(key)
        assert focused(opened) == control


def test_the_switch_is_there_in_a_narrow_window(opened: Opened, tmp_path: Path) -> None:
    """As a window is where a reader has enlarged the page."""
    show(opened, tmp_path, width=400, height=800)
    assert opened.driver.find_element("id", "keys").is_displayed()


def printed(opened: Opened) -> str:
    """The pages as they would be printed, in the file format's own words."""
    made = opened.driver.execute_cdp_cmd("Page.printToPDF", {"generateTaggedPDF": False})
    return base64.b64decode(made["data"]).decode("latin-1")


def test_many_findings_fill_their_pages(opened: Opened, tmp_path: Path) -> None:
    """Two findings in full, or seven with their places, have room on a page."""
    show(opened, tmp_path, run_samples.many(tmp_path, 620))
    opened.set("is-notice", True)
    pages = len(re.findall(r"/Type /Page\b", printed(opened)))
    assert (500 / 3) < pages <= 500 / 2 + 120 / 5 + 2
    assert not opened.run("return document.querySelector('#list > [open]')")


def test_a_finding_that_is_longer_than_a_page_is_printed_whole(opened: Opened, tmp_path: Path) -> None:
    few = run_samples.record(tmp_path)
    first = few.findings[1]
    long = replace(first, help="word " * 2_000)
    show(opened, tmp_path, replace(few, findings=(long,)))
    assert len(re.findall(r"/Type /Page\b", printed(opened))) >= 2
