"""The page of `tensafe tour --html` as a browser shows it: every stop read back, in both languages."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any

import pytest

from report.html.opened import Opened
from report.html.test_in_browser import contrast
from tensafe.report.html.tour_page import tour_page
from tensafe.report.tour_text import PREAMBLE, reach
from tensafe.tour import STOPS
from tensafe.tour.languages import WORDS, in_language
from tensafe.tour.pictures import GraphRow
from tensafe.tour.walking import Shown, Taken, take

TAB, ENTER, RIGHT = "\ue004", "\ue007", "\ue014"
SECTIONS = """
return [...document.querySelectorAll("main section")].map((section) => ({
  name: section.id,
  title: section.querySelector("h2 a").lastChild.textContent,
  says: section.querySelector("p").textContent,
  headings: [...section.querySelectorAll("h3")].map((one) => one.textContent),
  programs: [...section.querySelectorAll("pre")].map((one) => one.textContent),
  gave: [...section.querySelectorAll("pre .gave")].map((one) => one.textContent.slice(2, -1)),
  differs: section.querySelectorAll(".differs").length,
  rows: [...section.querySelectorAll("tr")].map(
    (row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent)),
  bars: [...section.querySelectorAll(".t-bar")].map((bar) => {
    const whole = bar.getBoundingClientRect(), table = bar.closest("td").getBoundingClientRect();
    const ink = bar.querySelector("i")?.getBoundingClientRect();
    return [whole.width, ink ? ink.left - whole.left : 0, ink ? ink.width : 0];
  }),
}))
"""


@lru_cache
def toured(language: str) -> tuple[Taken, ...]:
    if language != "en":
        told = in_language(STOPS, language)
        pairs = zip(toured("en"), told, strict=True)
        return tuple(dataclasses.replace(taken, stop=stop) for taken, stop in pairs)
    return tuple(take(stop) for stop in STOPS)


@lru_cache
def page(language: str) -> str:
    return tour_page(toured(language), WORDS[language], language)


def standing(row: GraphRow, language: str) -> str:
    made, leaf, outside = {
        "en": (f"in the graph, by {row.maker}", "a leaf that is trained", "in no graph"),
        "ko": (f"그래프 안, {row.maker}가 만듦", "학습되는 leaf", "그래프 밖"),
    }[language]
    return made if row.maker else leaf if row.requires_grad else outside


def without_marks(words: str) -> str:
    return words.replace("`", "")


def sources(shown: tuple[Shown, ...]) -> list[str]:
    return [one.source for one in shown if one.source not in PREAMBLE]


@pytest.mark.parametrize("language", WORDS)
def test_every_stop_is_there_with_its_lines(opened: Opened, language: str) -> None:
    opened.open(page(language))
    sections: list[dict[str, Any]] = opened.run(SECTIONS)
    words = WORDS[language]
    assert [one["name"] for one in sections] == [stop.name for stop in STOPS]
    for section, taken in zip(sections, toured(language), strict=True):
        assert section["title"] == taken.stop.title
        assert without_marks(taken.stop.says) in section["says"]
        assert section["says"].endswith(words.stands if taken.stop.holds else words.stands_not)
        assert words.happens in section["headings"]
        code, call = section["programs"]
        for shown, text in ((taken.code, code), (taken.call, call)):
            place = 0
            for source in sources(shown):
                assert text.find(source, place) >= 0, source
                place = text.find(source, place) + len(source)
        gave = [line for one in (*taken.code, *taken.call) if one.gave for line in one.gave.splitlines()]
        assert section["gave"] == gave
        assert section["differs"] == sum(not one.holds for one in (*taken.code, *taken.call))
        memory = [[one.name, one.storage, "", reach(one, words)] for one in taken.memory]
        graph = [[one.name, standing(one, language)] for one in taken.graph]
        assert section["rows"] == memory + graph


def test_the_bars_are_to_scale(opened: Opened) -> None:
    opened.open(page("en"))
    for section, taken in zip(opened.run(SECTIONS), toured("en"), strict=True):
        widest = max((row.storage_nbytes for row in taken.memory), default=0)
        full = max((bar[0] for bar in section["bars"]), default=0)
        for bar, row in zip(section["bars"], taken.memory, strict=True):
            assert bar[0] == pytest.approx(max(3, full * row.storage_nbytes / widest), abs=0.6)
            assert bar[1] == pytest.approx(bar[0] * row.extent.start / row.storage_nbytes, abs=1)


def test_a_claim_that_is_no_longer_true_is_shown(opened: Opened) -> None:
    stop = next(one for one in STOPS if one.name == "slice-shares-memory")
    broken = dataclasses.replace(stop, code=stop.code.replace("#> tensor(9.)", "#> tensor(8.)"))
    opened.open(tour_page([take(broken)], WORDS["en"], "en"))
    assert opened.run("return document.querySelector('.differs').textContent").strip() == (
        "here it differs; expected: tensor(8.)"
    )
    assert not opened.driver.find_elements("css selector", "nav")


@pytest.mark.parametrize("language", WORDS)
def test_nothing_is_asked_for_and_nothing_complained_of(opened: Opened, language: str) -> None:
    opened.open(page(language))
    assert opened.run("return document.documentElement.lang") == language
    for link in opened.driver.find_elements("css selector", "nav a"):
        link.click()
    assert [one for one in opened.requests() if "#" not in one] == []
    assert opened.complaints() == []
    assert opened.run("return document.scripts.length") == 0


def test_the_keyboard_reaches_stops_and_programs(opened: Opened) -> None:
    opened.open(page("en"), 400, 700)
    reached = []
    for stop in STOPS:
        opened.press(TAB)
        reached.append(opened.active().get_attribute("href").rpartition("#")[2])
        if stop is STOPS[2]:
            opened.press(ENTER)
            assert opened.run("return location.hash") == f"#{stop.name}"
            top = opened.run(
                "return document.getElementById(arguments[0]).getBoundingClientRect().top", stop.name
            )
            assert abs(top) < 5
            break
    assert reached == [stop.name for stop in STOPS[:3]]
    opened.press(TAB)
    assert opened.active().tag_name == "a"  # the heading of the stop, and then its program
    opened.press(TAB)
    assert opened.active().tag_name == "pre"
    wide = "return document.activeElement.scrollWidth - document.activeElement.clientWidth"
    hidden = opened.run(
        "const pre = [...document.querySelectorAll('pre')].find((one) => one.scrollWidth > one.clientWidth);"
        "pre.focus(); " + wide
    )
    assert hidden > 0
    opened.press(RIGHT, RIGHT)
    assert opened.run("return new Promise((done) => setTimeout(() => done(1), 300))")
    assert opened.run("return document.activeElement.scrollLeft") > 0


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_in_either_scheme(opened: Opened, dark: bool) -> None:
    opened.open(page("en"), dark=dark)
    paper = opened.run("return getComputedStyle(document.documentElement).backgroundColor")
    wash = opened.run("return getComputedStyle(document.querySelector('pre')).backgroundColor")
    assert (paper != "rgb(255, 255, 255)") is dark
    script = "return getComputedStyle(document.querySelector(arguments[0])).color"
    for selector in ("body", "h2 a", "h3", "p", "nav a", "td .t-code"):
        assert contrast(opened.run(script, selector), paper) >= 4.5, selector
    for selector in ("pre", "pre .gave"):
        assert contrast(opened.run(script, selector), wash) >= 4.5, selector


@pytest.mark.parametrize("language", WORDS)
def test_a_narrow_window_scrolls_only_downwards(opened: Opened, language: str) -> None:
    opened.open(page(language), 400, 800)
    width = opened.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]["width"]
    assert width <= 400


def test_no_line_of_a_program_is_cut_off_on_paper(opened: Opened) -> None:
    opened.open(page("en"), 800, 900)
    pres = "return [...document.querySelectorAll('pre')]"
    cut = pres + ".filter((one) => one.scrollWidth > one.clientWidth).length"
    assert opened.run(cut) > 0
    opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert opened.run(cut) == 0
    finally:
        opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
