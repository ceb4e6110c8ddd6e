"""The page of a run without a browser: complete, escaped, closed to the outside, small."""

from __future__ import annotations

import base64
import html
import re
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from report.html import run_samples
from report.html.parsing import Parsed
from tensafe.findings import Record, Severity, Site, from_json, to_json
from tensafe.report.characters import printable
from tensafe.report.html import finding_fragment, record_fragment, run_page
from tensafe.report.html.assets import asset
from tensafe.report.html.findings.page import IN_FULL
from tensafe.report.text import View

TAGS = frozenset(
    re.findall(
        r"\w+",
        "html head meta title style body a main header div h1 h2 h3 span bdi button dl dt dd section form "
        "input label select option p output kbd details summary table caption tbody thead tr td th mark b em "
        "ol ul li svg rect code del ins script",
    )
)
ADDRESSES = frozenset(re.findall(r"\w+", "src srcset action formaction background data poster ping"))


def assert_harmless(parsed: Parsed) -> None:
    assert parsed.unbalanced == []
    assert parsed.tags <= TAGS
    assert not [name for name in parsed.attributes if name.startswith("on")]
    assert not parsed.attributes & ADDRESSES
    assert "style" not in parsed.attributes


def test_every_finding_place_and_figure_is_there_without_a_script(tmp_path: Path) -> None:
    record = run_samples.record(tmp_path)
    text = Parsed(run_page(record, run_samples.view(tmp_path, record))).text
    flat = " ".join(text.split())
    for finding in record.findings:
        assert " ".join(finding.message.replace("`", " ").split()) in flat
        for because in finding.because:
            assert because.role in flat
    assert "first += bias" in text
    assert "bytes 32 to 64; shares 32 B with the first" in flat
    assert "seen 3 times" in flat
    assert "seen by DataLoader worker 0, rank 1" in flat
    assert "what runs inside is not seen" in flat
    assert "6.0 KiB in 7 calls at 2 lines" in flat


def test_the_fix_is_shown_as_the_lines_that_go_and_come(tmp_path: Path) -> None:
    record = run_samples.record(tmp_path)
    page = run_page(record, run_samples.view(tmp_path, record))
    assert "<del>    first += bias</del>" in page
    assert "<ins>    first = first + bias</ins>" in page


def test_a_fix_that_cannot_be_carried_out_is_only_named(tmp_path: Path) -> None:
    record = run_samples.record(tmp_path)
    page = run_page(record, run_samples.view(tmp_path))
    assert "use the out-of-place form" in page
    assert "<del>" not in page


def test_a_record_without_memory_and_times_is_shown_without_their_pictures(tmp_path: Path) -> None:
    record = run_samples.record(tmp_path)
    bare = tuple(
        replace(one, memory=(), because=tuple(replace(other, when="") for other in one.because))
        for one in record.findings
    )
    page = run_page(replace(record, findings=bare), run_samples.view(tmp_path))
    assert "In memory" not in page
    assert "In time" not in page
    assert "saved here for SigmoidBackward0" in page


def test_a_place_of_unknown_time_leaves_the_order_unsaid(tmp_path: Path) -> None:
    finding = run_samples.saved_modified(str(tmp_path / "train.py"))
    unsure = (finding.because[0], replace(finding.because[1], when=""))
    for because, told in ((finding.because, True), (unsure, False)):
        page = run_page(Record("run", (replace(finding, because=because),)), run_samples.view(tmp_path))
        assert ("In time" in page) is told


def test_a_file_that_is_gone_leaves_its_places(tmp_path: Path) -> None:
    record = run_samples.record(tmp_path)
    (tmp_path / "train.py").unlink()
    text = Parsed(run_page(record, run_samples.view(tmp_path))).text
    assert "the file cannot be read" in text
    assert "train.py:7:5" in text
    assert "changed in place here" in text


def test_a_clean_record_says_so() -> None:
    text = Parsed(run_page(Record("check", summary={"files": 12}), View())).text
    assert "Nothing found." in text
    assert "12 files" in text


def test_hostile_texts_are_texts(tmp_path: Path) -> None:
    record = from_json(to_json(run_samples.hostile(tmp_path)))
    parsed = Parsed(run_page(record, run_samples.view(tmp_path, record)))
    assert_harmless(parsed)
    assert "del" in parsed.tags
    assert len(parsed.scripts) == 1
    assert f"x = 1  # {run_samples.EVIL}" in "".join(parsed.texts)
    for finding in record.findings:
        assert printable(finding.message)[:50].split("`")[0] in parsed.text


def test_hostile_texts_are_texts_in_a_notebook(tmp_path: Path) -> None:
    record = run_samples.hostile(tmp_path)
    view = run_samples.view(tmp_path, notices=True)
    for markup in (record_fragment(record, view), *(finding_fragment(one, view) for one in record.findings)):
        parsed = Parsed(markup)
        assert_harmless(parsed)
        assert parsed.scripts == []
        assert "id" not in parsed.attributes
        assert run_samples.EVIL in parsed.text


def test_the_style_of_a_fragment_touches_nothing_around_it() -> None:
    selectors = re.findall(r"([^{}]+)\{", asset("findings.css"))
    assert len(selectors) > 10
    for selector in ",".join(selectors).split(","):
        assert re.match(r"\s*\.tensafe( |$)", selector.rstrip()), selector


def test_nothing_points_outside(tmp_path: Path) -> None:
    record = run_samples.record(tmp_path)
    page = run_page(record, run_samples.view(tmp_path, record))
    assert not re.search(r"https?:|[\"'(=]//|url\(|@import|\bfetch\(|XMLHttp|WebSocket|import\(|Beacon", page)
    metas = [a["content"] or "" for tag, a in Parsed(page).elements if tag == "meta" and "http-equiv" in a]
    only = r"default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; "
    assert re.match(only + "base-uri 'none'; form-action 'none'$", metas[0])


def test_a_notebook_shows_no_more_than_a_few_and_counts_the_rest(tmp_path: Path) -> None:
    record = run_samples.many(tmp_path, 100)
    fragment = record_fragment(record, View(root=str(tmp_path)))
    loud = sum(finding.severity is not Severity.NOTICE for finding in record.findings)
    assert fragment.count("<details") == 30
    assert f"and {loud - 30} more findings" in fragment


@pytest.mark.parametrize("count", [IN_FULL + 1, IN_FULL + 150])
def test_a_long_page_keeps_the_whole_of_its_later_findings_packed(tmp_path: Path, count: int) -> None:
    record = run_samples.many(tmp_path, count)
    page = run_page(record, run_samples.view(tmp_path))
    assert page.count("<details") == count
    blocks = re.findall(r'<script type="text/plain" class="bodies">([^<]*)</script>', page)
    bodies = [body for block in blocks for body in zlib.decompress(base64.b64decode(block)).split(b"\0")]
    assert len(bodies) == count - IN_FULL
    ordered = sorted(record.findings, key=lambda finding: list(Severity).index(finding.severity))
    for finding, body in zip(ordered[IN_FULL:], bodies, strict=True):
        parsed = Parsed(body.decode())
        assert_harmless(parsed)
        assert str(finding.at.line) in parsed.texts
        start = finding.memory[0].tensors[1].offset
        assert f"bytes {start:,} to {start + 10_240:,}" in parsed.text


def test_a_page_of_ten_thousand_findings_is_small(tmp_path: Path) -> None:
    record = run_samples.many(tmp_path, 10_000)
    page = run_page(record, run_samples.view(tmp_path))
    assert len(page.encode()) < 15_000_000
    assert page.count("<details") == 10_000


def test_long_texts_do_not_swell_the_page(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("x = '" + "y" * 100_000 + "'\n")
    site = Site(str(tmp_path / "long.py"), 1, 50_000, 1, 50_010)
    one = replace(run_samples.saved_modified("a.py"), at=site, because=(), fix=None, help="h" * 100_000)
    found = tuple(replace(one, message=f"{number} " + "m" * 100_000) for number in range(1_000))
    page = run_page(Record("run", found), View(root=str(tmp_path)))
    assert len(page.encode()) < 10_000_000
    assert "…" in html.unescape(page)
