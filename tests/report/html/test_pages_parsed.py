"""The pages and fragments without a browser: balanced, escaped, closed to the outside."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given

from report.html import samples
from report.html.parsing import Parsed
from tensafe.memory.map import MemoryMap
from tensafe.report.characters import printable
from tensafe.report.html import checkpoint_page, drawing, memory_fragment, memory_page
from tensafe.report.html.assets import asset

PAGE_TAGS = frozenset(
    re.findall(
        r"\w+",
        "html head meta title style body main header h1 h2 section dl div dt dd data svg rect details "
        "summary ul li p span bdi form input label select option output button table caption thead tbody "
        "tr th td aside script",
    )
)
FRAGMENT_TAGS = frozenset(re.findall(r"\w+", "div style b bdi span table colgroup col tbody tr td i ul li"))
ADDRESSES = frozenset(re.findall(r"\w+", "href src srcset action formaction background data poster ping"))
IMPORTS = [
    ("webbrowser.open", 2, "runs a command", True),
    ("torch._utils._rebuild_tensor_v2", 40, "expected", False),
]


def evil_checkpoint(memory: MemoryMap) -> str:
    evil = samples.HOSTILE_NAMES
    found = [*IMPORTS, (evil[0], 1, evil[1], True), (evil[3], 1, evil[4], False)]
    return checkpoint_page(memory, globals=found)


def assert_harmless(parsed: Parsed, allowed: frozenset[str]) -> None:
    assert parsed.unbalanced == []
    assert parsed.tags <= allowed
    assert not [name for name in parsed.attributes if name.startswith("on")]
    assert not parsed.attributes & ADDRESSES


@given(samples.maps())
def test_whatever_the_names_a_page_holds_only_its_own_elements(memory: MemoryMap) -> None:
    for page in (memory_page(memory), evil_checkpoint(memory)):
        page.encode("utf-8")
        parsed = Parsed(page)
        assert_harmless(parsed, PAGE_TAGS)
        assert len(parsed.scripts) == 2
        assert "style" not in parsed.attributes, "the policy lets no style attribute work"


@given(samples.maps())
def test_whatever_the_names_a_fragment_holds_only_its_own_elements(memory: MemoryMap) -> None:
    fragment = memory_fragment(memory)
    fragment.encode("utf-8")
    parsed = Parsed(fragment)
    assert_harmless(parsed, FRAGMENT_TAGS)
    assert "id" not in parsed.attributes
    assert parsed.scripts == []


@given(samples.maps())
def test_the_data_of_a_page_names_every_tensor(memory: MemoryMap) -> None:
    rows = Parsed(memory_page(memory)).json()["storages"]
    told = sorted((row["label"], row["nbytes"], len(row["tensors"])) for row in rows)
    held = ((printable(each.label), each.nbytes, len(each.tensors)) for each in memory.storages)
    assert told == sorted(held)
    names = sorted(name for row in rows for tensor in row["tensors"] for name in tensor[0])
    every = (name for storage in memory.storages for tensor in storage.tensors for name in tensor.names)
    assert names == sorted(map(printable, every))


def test_the_hostile_names_stand_in_the_table_as_text() -> None:
    parsed = Parsed(memory_page(samples.hostile()))
    for name in map(printable, samples.HOSTILE_NAMES):
        shown = name if len(name) <= 160 else f"{name[:80]}…{name[-79:]}"
        assert shown in parsed.texts


OUTSIDE = r"https?:|[\"'(=]//|url\(|@import|\bfetch\(|XMLHttpRequest|WebSocket|import\(|sendBeacon"


@pytest.mark.parametrize("render", [memory_page, evil_checkpoint, memory_fragment])
@pytest.mark.parametrize("sample", [samples.of_every_sort, samples.hostile, lambda: MemoryMap("nothing", ())])
def test_nothing_points_outside(render: Callable[[MemoryMap], str], sample: Callable[[], MemoryMap]) -> None:
    text = render(sample())
    assert not re.search(OUTSIDE, text, re.IGNORECASE)


def test_the_policy_names_the_script_and_the_style_and_nothing_else() -> None:
    page = memory_page(samples.of_every_sort())
    parsed = Parsed(page)
    metas = (a for _, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy")
    policy = next(metas)["content"]
    style = re.search(r"<style>(.*?)</style>", page, re.S)
    assert style

    def hashed(content: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"

    assert policy == (
        f"default-src 'none'; style-src {hashed(style[1])}; script-src {hashed(parsed.scripts[1])}; "
        "base-uri 'none'; form-action 'none'"
    )


def test_every_figure_of_the_totals_is_there_to_the_byte() -> None:
    page = Parsed(memory_page(samples.of_every_sort()))
    figures = [int(a["value"] or "") for tag, a in page.elements if tag == "data"]
    mib = 2**20
    stored = (4 + 3 + 2) * mib + 3 * 1_200_000 + 4_000 + 8 + 800_000 + 512
    dead = (3 * mib - 1_024) + mib // 2 + 400_000 + 512
    views = 4 * mib + 10 * 4_096 + mib + 4 * mib
    logical = views + 1_024 + 3 * mib // 2 + 3 * 1_200_000 + 4_000 + 8 + 400_000
    assert figures == [logical, stored, stored - dead, 4 * mib, dead]


def test_a_checkpoint_lists_its_facts_and_the_dangerous_imports_first() -> None:
    memory = MemoryMap("model.pt", (), facts={"format": "zip", "torch": "2.13.0"})
    text = Parsed(checkpoint_page(memory, globals=reversed(IMPORTS))).text
    assert "zip" in text
    assert "2.13.0" in text
    assert "1 of them can run code" in text
    assert text.index("webbrowser.open") < text.index("torch._utils._rebuild_tensor_v2")
    assert "runs a command" in text


def test_lists_that_are_cut_off_say_how_much_is_left() -> None:
    memory = MemoryMap("many", (), not_seen=tuple(f"what {number}" for number in range(5_000)))
    text = Parsed(memory_page(memory)).text
    assert "what 199" in text
    assert "what 200" not in text
    assert "and 4,800 more" in text


def test_a_page_of_ten_thousand_tensors_is_small() -> None:
    assert len(memory_page(samples.many(10_000)).encode()) < 6_000_000


def test_names_of_ten_thousand_characters_do_not_swell_the_page() -> None:
    long = "layer." + "y" * 10_000
    tensors = (samples.tensor(f"{long}.{number}", shape=(1,), offset=number) for number in range(2_000))
    page = memory_page(MemoryMap("long", (samples.storage("storage 1", 8_000, *tensors),)))
    assert len(page.encode()) < 20_000_000
    assert "1999" in Parsed(page).json()["storages"][0]["tensors"][1_999][0][0][-4:]


@pytest.mark.parametrize(("render", "drawn"), [(memory_page, "bar"), (memory_fragment, "t-bar")])
def test_who_cannot_see_a_bar_is_told_what_it_shows(render: Callable[[MemoryMap], str], drawn: str) -> None:
    taken = samples.tensor("q", shape=(4,), offset=2)
    held = samples.storage("storage 1", 2_000, taken, samples.tensor("empty", shape=(0,)))
    bars = [
        found
        for _, found in Parsed(render(MemoryMap("one", (held,)))).elements
        if found.get("class") == drawn
    ]
    assert [found["role"] for found in bars] == ["img"] * 3
    assert [found["aria-label"] for found in bars] == [
        "2.0 KiB, 1.9 KiB dead",
        "bytes 8 to 24 of 2,000",
        "no bytes",
    ]


def test_the_style_of_a_fragment_touches_nothing_around_it() -> None:
    selectors = re.findall(r"([^{}]+)\{", asset("fragment.css"))
    assert len(selectors) > 10
    for selector in ",".join(selectors).split(","):
        assert re.match(r"\s*\.tensafe( |$)", selector.rstrip()), selector


def test_a_fragment_of_many_storages_says_how_many_are_left_out() -> None:
    memory = samples.many(1_000)
    fragment = memory_fragment(memory)
    assert len(fragment) < 40_000
    assert f"and {len(memory.storages) - 12:,} smaller storages" in fragment


def test_the_data_block_holds_no_character_that_markup_knows() -> None:
    block = re.search(r'id="data">(.*?)</script>', memory_page(samples.hostile()), re.DOTALL)
    assert block
    assert len(block[1]) > 10_000
    assert not set(block[1]) & set("<>&")


@pytest.mark.parametrize(
    "name", ["page.js", "findings.js", "page.css", "findings.css", "run.css", "tour.css"]
)
def test_what_is_laid_into_a_page_means_what_its_file_says(name: str) -> None:
    """However a console encodes what is printed: the hashes of the policy are those of other bytes else."""
    laid = asset(name)
    assert laid.isascii()
    if name.endswith(".css"):
        read = re.sub(r"\\([0-9a-f]{2,6}) ", lambda found: chr(int(found[1], 16)), laid)
    else:
        read = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), laid)
    assert read == (Path(drawing.__file__).parent / name).read_text(encoding="utf-8")


@given(samples.maps())
def test_a_page_is_the_same_in_every_encoding(memory: MemoryMap) -> None:
    page = memory_page(memory)
    assert page.encode("ascii") == page.encode("cp949") == page.encode("utf-8")
