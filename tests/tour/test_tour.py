"""Every stop of the tour is run here, and each of its claims is what happens."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import torch

from tensafe.cli.commands import carry_out
from tensafe.report.tour_text import WIDTH, wrapped
from tensafe.rules._loader import catalogue
from tensafe.tour import STOPS
from tensafe.tour.korean import TEXTS
from tensafe.tour.languages import WORDS
from tensafe.tour.stop import Stop
from tensafe.tour.walking import take

NAMES = """
slice-shares-memory index-copies array-for-a-plot zero-a-slice view-or-reshape one-channel comparing-addresses
deepcopy-is-slow read-only copy-a-model copy-of-a-part share-across-processes pickle-protocol-5
own-deepcopy-method what-writes-in-place leaf-in-place detach-cuts-clone-keeps output-to-numpy
gan-discriminator weight-history augmentation modified-by-an-inplace-operation
"""


def test_every_technique_of_the_guides_has_a_stop() -> None:
    assert sorted(stop.name for stop in STOPS) == sorted(NAMES.split())


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
def test_what_a_stop_claims_is_what_happens(stop: Stop) -> None:
    taken = take(stop)
    wrong = [(one.source, one.claimed, one.gave) for one in (*taken.code, *taken.call) if not one.holds]
    assert not wrong
    assert any(one.claimed for one in taken.code)
    assert any(one.claimed for one in taken.call)


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
def test_each_rule_and_each_korean_text_exists(stop: Stop) -> None:
    assert set(stop.rules) <= {rule.name for rule in catalogue()}
    text = TEXTS[stop.name]
    assert all(any("가" <= letter <= "힣" for letter in words) for words in (text.happens,))
    assert text.says
    assert text.title


def test_a_claim_that_breaks_is_seen() -> None:
    stop = next(stop for stop in STOPS if stop.name == "slice-shares-memory")
    for broken in ("x[1]  #> tensor(8.)", "x[1]", "x.missing  #> tensor(9.)"):
        assert not take(
            dataclasses.replace(stop, code=stop.code.replace("x[1]  #> tensor(9.)", broken))
        ).holds


def test_the_drawing_reaches_the_bytes_of_the_elements() -> None:
    stop = next(stop for stop in STOPS if stop.name == "slice-shares-memory")
    rows = take(stop).memory
    assert [
        (row.name, row.storage, row.extent.start, row.extent.stop, row.storage_nbytes) for row in rows
    ] == [
        ("x", "A", 0, 24, 24),
        ("y", "A", 4, 16, 24),
        ("c", "B", 0, 12, 12),
    ]


def test_the_tour_leaves_random_numbers_and_modes_alone() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    with torch.no_grad():
        assert take(STOPS[5]).holds
        assert not torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), before)


def test_only_and_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["tour", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [one.name for one in STOPS]
    assert carry_out(["tour", "--only", "leaf-in-place,read-only"]) == 0
    told = capsys.readouterr().out
    assert "1/2" in told
    assert "w.detach()" in told
    assert "tensor([2., 2.])" in told
    assert "ReadOnlyError" in told


def test_korean(capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["tour", "--only", "zero-a-slice", "--lang", "ko"]) == 0
    told = capsys.readouterr().out
    assert "맞는 말입니다" in told
    assert "16바이트 중 4~12" in told


@pytest.mark.parametrize("language", ["en", "ko"])
def test_no_line_is_wider_than_its_room(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["tour", "--lang", language]) == 0
    told = capsys.readouterr().out.splitlines()
    code = {line for stop in STOPS for line in f"{stop.code}{stop.call}".splitlines()}
    wide = [line for line in told if columns(line) > WIDTH and line[4:].partition("  #> ")[0] not in code]
    assert [line for line in wide if "/22  " not in line and "[" not in line] == []


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)


def test_every_word_around_a_stop_is_in_korean(capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["tour", "--only", "leaf-in-place,augmentation", "--lang", "ko"]) == 0
    told = capsys.readouterr().out
    lines = {line.strip() for line in told.splitlines()}
    for words in vars(WORDS["en"]).values():
        filled = words.format("ExpBackward0", 0, 12)
        assert filled not in (told if " " in filled else lines)
    assert "그래프 안, ExpBackward0가 만듦" in told
    assert "학습되는 leaf" in told
    assert "그래프 밖" in told


def test_a_line_that_goes_on_keeps_its_indentation() -> None:
    assert wrapped("  keeps all 24 bytes alive", 14) == ["  keeps all 24", "  bytes alive"]
    assert wrapped("  a  b   c", 20) == ["  a  b   c"]
    assert wrapped("  " + "x" * 10, 6) == ["  xxxx", "  xxxx", "  xx"]
    assert wrapped("가나다 라마바", 8) == ["가나다", "라마바"]
    assert wrapped("", 8) == [""]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--only", "leaf-in-plac"], "did you mean leaf-in-place?"),
        (["--lang", "xx"], "argument --lang"),
        (["--output", "missing/folder/tour.txt"], "missing"),
    ],
)
def test_mistakes_are_answered_in_one_line(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(["tour", *options]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_the_page_is_whole_and_sends_nothing(tmp_path: Path) -> None:
    page = tmp_path / "tour.html"
    assert carry_out(["tour", "--only", "index-copies", "--html", "--output", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "x[x &gt; 2].zero_()" in text
    assert "default-src &#x27;none&#x27;" in text
    assert "http" not in text.replace("http-equiv", "")
    assert "<script" not in text


def test_without_torch_it_says_so(tmp_path: Path) -> None:
    """`-S` leaves out the packages of the environment."""
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-S", "-m", "tensafe", "tour"],
        env={"PYTHONPATH": str(source)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "the tour runs torch" in done.stderr
    assert "Traceback" not in done.stderr
