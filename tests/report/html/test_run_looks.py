"""How the page of a run looks in headless Chromium: readable in both schemes, at 400 and 1280 wide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from report.html import run_samples
from report.html.opened import Opened
from report.html.test_explanation_fragment import EXPLAINED
from report.html.test_in_browser import contrast
from report.html.test_run_in_browser import show
from tensafe.findings import NotChecked
from tensafe.report.html import explanation_fragment, record_fragment

PAINTED = """
const node = document.querySelector(arguments[0]), layers = [];
for (let one = node; one; one = one.parentElement) layers.unshift(getComputedStyle(one).backgroundColor);
const pen = document.createElement("canvas").getContext("2d");
const paint = (colours) => {
  for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
  return `rgb(${[...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).join(", ")})`;
};
return [paint(layers), paint([...layers, getComputedStyle(node).color])];
"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_in_either_scheme(opened: Opened, tmp_path: Path, dark: bool) -> None:
    show(opened, tmp_path, dark=dark)
    paper, _ = opened.run(PAINTED, "html")
    assert (paper != "rgb(255, 255, 255)") is dark
    marked = (
        ".f-source tr.f-at b",
        ".f-source tr.f-near em",
        "mark",
        "mark.f-other",
        ".f-at td",
        ".f-near td",
    )
    heads = (
        "body",
        ".faint",
        ".f-error",
        ".f-warning",
        ".f-about",
        ".f-title",
        ".f-faint",
        "kbd",
        ".f-time .f-at",
    )
    for selector in (*heads, *marked, "del", "ins", ".unchecked dd", ".copies td"):
        ground, ink = opened.run(PAINTED, selector)
        assert contrast(ink, ground) >= 4.5, selector


PAPERS = [("#ffffff", "#212121"), ("#111111", "#dddddd"), ("#1e1e1e", "#cccccc"), ("#212121", "#e0e0e0")]
"""Paper and ink of Jupyter's and VS Code's notebooks and of Colab's, light and dark."""


@pytest.mark.parametrize(("paper", "ink"), PAPERS)
def test_text_can_be_read_in_a_notebook_of_either_scheme(
    opened: Opened, tmp_path: Path, paper: str, ink: str
) -> None:
    record = run_samples.record(tmp_path)
    view = run_samples.view(tmp_path, notices=True)
    explained = explanation_fragment(EXPLAINED) + explanation_fragment(
        replace(EXPLAINED, reasons=(), cautions=())
    )
    fragments = record_fragment(record, view) + explained
    opened.open(f'<body style="background: {paper}; color: {ink}">{fragments}')
    for selector in (
        *(".f-error", ".f-warning", ".f-notice", "tr.f-at b", "tr.f-near em", "mark", "mark.f-other"),
        *(".f-at td", ".t-no", ".t-yes"),
    ):
        ground, pen = opened.run(PAINTED, selector)
        assert contrast(pen, ground) >= 4.5, selector


def test_the_switch_overrules_the_scheme(opened: Opened, tmp_path: Path) -> None:
    show(opened, tmp_path)
    papers = []
    for _ in range(4):
        papers.append(opened.run("return getComputedStyle(document.documentElement).backgroundColor"))
        opened.run("document.getElementById('theme').click()")
    light, same, dark, again = papers
    assert light == same == again
    assert dark != light


@pytest.mark.parametrize("sample", [run_samples.record, run_samples.hostile])
@pytest.mark.parametrize("script", [True, False])
def test_a_narrow_window_scrolls_only_downwards(
    opened: Opened, tmp_path: Path, sample: Any, script: bool
) -> None:
    show(opened, tmp_path, sample(tmp_path), width=400, height=800, script=script)
    width = opened.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]["width"]
    assert width <= 400


@pytest.mark.parametrize("width", [400, 1280])
def test_words_without_an_end_widen_no_window(opened: Opened, tmp_path: Path, width: int) -> None:
    endless, record = "x" * 5_000, run_samples.record(tmp_path)
    found = run_samples.saved_modified(str(tmp_path / "train.py"))
    assert found.fix
    site = replace(found.at, function=endless)
    finding = replace(found, at=site, message=endless, label=endless, help=endless, processes=(endless,))
    finding = replace(finding, fix=replace(found.fix, title=endless))
    summary = {**record.summary, endless: endless, "program": endless}
    unseen = (NotChecked(endless, endless),)
    show(
        opened,
        tmp_path,
        replace(record, findings=(finding,), summary=summary, not_checked=unseen),
        width=width,
    )
    shown = opened.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]["width"]
    assert shown <= width
