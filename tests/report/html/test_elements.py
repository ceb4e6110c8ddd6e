"""Markup by construction, and sizes and names in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.html.parsing import Parsed
from tensafe.report.characters import printable
from tensafe.report.html.elements import Html, element, join, text, void
from tensafe.report.html.wording import count, percent, portion, shape, shortened, size


@given(st.text())
def test_any_text_comes_back_as_it_may_be_shown(value: str) -> None:
    parsed = Parsed(element("p", value, title=value))
    assert "".join(parsed.texts) == printable(value)
    assert parsed.elements == [("p", {"title": printable(value)})]


def test_markup_is_kept_and_text_beside_it_is_not() -> None:
    assert element("p", Html("<b>x</b>"), "<b>y</b>") == "<p><b>x</b>&lt;b&gt;y&lt;/b&gt;</p>"
    assert join([text("&"), "&"]) == "&amp;&amp;"


def test_attributes_follow_their_values() -> None:
    assert element("p", class_="a", aria_label='"') == '<p class="a" aria-label="&quot;"></p>'
    assert void("input", disabled=True, checked=False, id=None, min=0) == '<input disabled min="0">'


@pytest.mark.parametrize(
    ("nbytes", "words"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1.0 KiB"),
        (1_536, "1.5 KiB"),
        (102_399, "100 KiB"),
        (1_048_575, "1.0 MiB"),
        (154_389_504, "147 MiB"),
        (2**40, "1.0 TiB"),
        (2**70 - 1, "1,024 EiB"),
        (2**70, "over 1,024 EiB"),
        (10**4_000, "over 1,024 EiB"),
    ],
)
def test_sizes(nbytes: int, words: str) -> None:
    assert size(nbytes) == words


@given(st.integers(0, 2**69))
def test_a_size_is_right_to_its_last_figure(nbytes: int) -> None:
    number, unit = size(nbytes).split()
    scale = 1024 ** (["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].index(unit))
    last = 0.1 if "." in number else 1
    assert abs(float(number.replace(",", "")) - nbytes / scale) <= last / 2 + 1e-9


@given(st.text(min_size=1), st.integers(3, 50))
def test_a_shortened_name_keeps_both_ends(name: str, most: int) -> None:
    short = shortened(name, most)
    assert len(short) <= max(most, 3)
    if short != name:
        before, after = short.split("…", 1) if name.count("…") == 0 else (short[:1], short[-1:])
        assert name.startswith(before)
        assert name.endswith(after)
        assert before
        assert after


def test_words() -> None:
    assert count(1, "tensor") == "1 tensor"
    assert count(10_000, "tensor") == "10,000 tensors"
    assert shape(()) == "scalar"
    assert shape((2, 3)) == "2 × 3"
    assert percent(1, 8) == "12.5%"
    assert percent(5, 0) == "0%"
    assert percent(10**400, 10**400) == "100%"
    assert portion(3, 4) == "75%"
    assert portion(999_999, 1_000_000) == "over 99.9%"
    assert portion(4, 4) == "100%"
