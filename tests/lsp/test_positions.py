"""Offsets, sites and positions of the protocol mean the same place, in every unit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pygls")

from lsp.client import edited
from tensafe.facts import Site
from tensafe.lsp.positions import Positions

UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
texts = st.text(alphabet="aé𝒳 \n\r", max_size=30)


def raw(place: object) -> dict[str, int]:
    return {"line": place.line, "character": place.character}  # type: ignore[attr-defined]


@given(texts, st.integers(0, 30), st.integers(0, 30), st.sampled_from(list(UNITS)))
def test_an_edit_between_offsets(text: str, one: int, other: int, encoding: str) -> None:
    start, end = sorted((min(one, len(text)), min(other, len(text))))
    span = Positions(text, encoding).range_between(start, end)
    edit = {"range": {"start": raw(span.start), "end": raw(span.end)}, "newText": "§"}
    assert edited(text, [edit], *UNITS[encoding]) == text[:start] + "§" + text[end:]


@given(texts, st.integers(0, 30), st.sampled_from(list(UNITS)))
def test_a_place_there_and_back(text: str, offset: int, encoding: str) -> None:
    positions = Positions(text, encoding)
    start = min(offset, len(text))
    line, column = positions.place(positions.range_between(start, start).start)
    site = Site("a.py", line, column, line, column + 1)
    assert positions.range_of(site).start == positions.range_between(start, start).start


def test_a_site_without_columns_is_its_line() -> None:
    span = Positions("a\nbcd\r\n", "utf-16").range_of(Site("a.py", 2))
    assert (raw(span.start), raw(span.end)) == ({"line": 1, "character": 0}, {"line": 1, "character": 3})
